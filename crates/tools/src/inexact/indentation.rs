//! The indentation of a block, shifted as a whole or made of other characters.

/// How the indentation of a file differs from that of an edit. All lines differ in the same way.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Shift<'a> {
    way: Way<'a>,
    known: Vec<Pair<'a>>,
}

/// The indentation of a line in the edit, and in the file.
type Pair<'a> = (&'a [u8], &'a [u8]);

#[derive(Debug, PartialEq, Eq)]
enum Way<'a> {
    /// The file has this in front of the edit's.
    Added(&'a [u8]),
    /// The edit has this in front of the file's.
    Removed(&'a [u8]),
    /// The file has tabs for so many spaces each, and so many more.
    Tabs { width: usize, more: isize },
    /// The file has so many spaces for a tab, and so many more.
    Spaces { width: usize, more: isize },
    /// There is one indentation only, and nothing to conclude from it.
    Unclear,
}

/// A tab stands for this many spaces at most.
const WIDEST_TAB: usize = 8;

impl<'a> Shift<'a> {
    /// `None` if the indentation is the same, or does not differ in a single way. The lines of both
    /// are the same otherwise.
    pub(super) fn between(old: &'a [u8], found: &'a [u8]) -> Option<Shift<'a>> {
        let lines = |text: &'a [u8]| text.split(|&byte| byte == b'\n');
        let is_blank = |line: &[u8]| line.trim_ascii().is_empty();
        let pairs = lines(old).zip(lines(found)).filter(|(old, _)| !is_blank(old));
        let mut known: Vec<Pair<'a>> = Vec::new();
        for (old, found) in pairs {
            let pair = (indentation(old), indentation(found));
            match known.iter().find(|(old, _)| *old == pair.0) {
                Some((_, found)) if *found != pair.1 => return None,
                Some(_) => {}
                None if known.len() == DEEPEST => return None,
                None => known.push(pair),
            }
        }
        if known.iter().all(|(old, found)| old == found) {
            return None;
        }
        let way = added(&known).or_else(|| removed(&known)).or_else(|| tabs(&known));
        let way = way.or_else(|| spaces(&known));
        let way = way.or_else(|| (known.len() == 1).then_some(Way::Unclear))?;
        Some(Shift { way, known })
    }

    /// A text of the edit with the indentation of the file; `None` if it is not clear what that is.
    pub(super) fn applied_to(&self, new: &[u8]) -> Option<Vec<u8>> {
        let mut shifted = Vec::with_capacity(new.len());
        for line in new.split_inclusive(|&byte| byte == b'\n') {
            let own = indentation(line);
            let rest = &line[own.len()..];
            if !rest.trim_ascii().is_empty() {
                shifted.extend(self.of(own)?);
            }
            shifted.extend_from_slice(rest);
        }
        Some(shifted)
    }

    fn of(&self, own: &[u8]) -> Option<Vec<u8>> {
        if let Some((_, found)) = self.known.iter().find(|(old, _)| *old == own) {
            return Some(found.to_vec());
        }
        match &self.way {
            Way::Added(front) => {
                let both = [front, own].concat();
                let is_new =
                    is_mixed(&both) && !self.known.iter().any(|(_, found)| is_mixed(found));
                (!is_new).then_some(both)
            }
            Way::Removed(front) => own.strip_prefix(*front).map(<[u8]>::to_vec),
            Way::Tabs { width, more } => {
                let is_whole = is_only(own, b' ') && own.len().is_multiple_of(*width);
                let count = (own.len() / width).checked_add_signed(*more)?;
                is_whole.then(|| vec![b'\t'; count])
            }
            Way::Spaces { width, more } => {
                let count = (own.len() * width).checked_add_signed(*more)?;
                is_only(own, b'\t').then(|| vec![b' '; count])
            }
            Way::Unclear => None,
        }
    }
}

/// A block with more different indentations is no code.
const DEEPEST: usize = 100;

fn added<'a>(known: &[Pair<'a>]) -> Option<Way<'a>> {
    let (old, found) = known.first()?;
    let front = found.strip_suffix(*old)?;
    let is_same = known.iter().all(|(old, found)| found.strip_suffix(*old) == Some(front));
    is_same.then_some(Way::Added(front))
}

fn removed<'a>(known: &[Pair<'a>]) -> Option<Way<'a>> {
    let (old, found) = known.first()?;
    let front = old.strip_suffix(*found)?;
    let is_same = known.iter().all(|(old, found)| old.strip_suffix(*found) == Some(front));
    is_same.then_some(Way::Removed(front))
}

fn tabs<'a>(known: &[Pair<'a>]) -> Option<Way<'a>> {
    let is_kind = |(old, found): &Pair<'_>| is_only(old, b' ') && is_only(found, b'\t');
    let (width, more) = line(&lengths(known, |(old, found)| (found, old)))?;
    // As `line` counts the spaces that are too many.
    let is_whole = more % isize::try_from(width).ok()? == 0;
    (known.iter().all(is_kind) && is_whole)
        .then_some(Way::Tabs { width, more: -more / isize::try_from(width).ok()? })
}

fn spaces<'a>(known: &[Pair<'a>]) -> Option<Way<'a>> {
    let is_kind = |(old, found): &Pair<'_>| is_only(old, b'\t') && is_only(found, b' ');
    let (width, more) = line(&lengths(known, |(old, found)| (old, found)))?;
    known.iter().all(is_kind).then_some(Way::Spaces { width, more })
}

/// The number of tabs and spaces in each pair.
fn lengths(known: &[Pair<'_>], tabs_first: fn(Pair<'_>) -> Pair<'_>) -> Vec<(usize, usize)> {
    let lengths = |(tabs, spaces): Pair<'_>| (tabs.len(), spaces.len());
    known.iter().map(|&pair| lengths(tabs_first(pair))).collect()
}

/// The width of a tab, and how many spaces come on top, if all pairs of tabs and spaces agree.
fn line(pairs: &[(usize, usize)]) -> Option<(usize, isize)> {
    let (fewest, most) = (*pairs.iter().min()?, *pairs.iter().max()?);
    let (fewest, most) = if fewest.0 == most.0 { ((0, 0), most) } else { (fewest, most) };
    let (tabs, spaces) = (most.0 - fewest.0, most.1.checked_sub(fewest.1)?);
    let width = spaces.checked_div(tabs).filter(|width| (2..=WIDEST_TAB).contains(width))?;
    let more = |(tabs, spaces): (usize, usize)| {
        Some(isize::try_from(spaces).ok()? - isize::try_from(tabs * width).ok()?)
    };
    let all = more(fewest)?;
    pairs.iter().all(|&pair| more(pair) == Some(all)).then_some((width, all))
}

fn indentation(line: &[u8]) -> &[u8] {
    let end = line.iter().take_while(|&&byte| byte == b' ' || byte == b'\t').count();
    &line[..end]
}

fn is_only(text: &[u8], byte: u8) -> bool {
    text.iter().all(|&other| other == byte)
}

fn is_mixed(text: &[u8]) -> bool {
    text.contains(&b' ') && text.contains(&b'\t')
}
