//! The messages between the program and its watchdog about a command.

use std::ffi::OsString;
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

use tokio::io::AsyncReadExt;
use tokio::net::UnixStream;

use crate::looks::ContentHash;
use crate::notes::Note;
use crate::sandbox::ResolvedSandbox;
use crate::words::{Variables, push_variables, take_variables};

/// A request, sent through the control socket of the command.
#[derive(Debug)]
pub(crate) struct Request {
    pub(crate) command: OsString,
    pub(crate) directory: OsString,
    /// Variables added to, or overriding, those of all commands.
    pub(crate) variables: Variables,
    /// The agent that runs it: commands of one agent share a loopback.
    pub(crate) agent: OsString,
    /// A path that a file tool writes with approval while the control socket is open. There is no
    /// command then.
    pub(crate) expected: OsString,
    /// Where changes of protected paths are moved to; empty if they are not checked.
    pub(crate) quarantine: OsString,
    /// Its sandbox, if any.
    pub(crate) sandbox: Option<ResolvedSandbox>,
}

impl Request {
    /// Each field is prefixed with its length.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        let sandbox = self.sandbox.as_ref().map(ResolvedSandbox::encode).unwrap_or_default();
        let mut variables = Vec::new();
        push_variables(&mut variables, &self.variables);
        let (command, directory) = (self.command.as_bytes(), self.directory.as_bytes());
        let (agent, expected) = (self.agent.as_bytes(), self.expected.as_bytes());
        let quarantine = self.quarantine.as_bytes();
        for field in [command, directory, &variables, agent, expected, quarantine, &sandbox] {
            bytes.extend_from_slice(&(field.len() as u64).to_le_bytes());
            bytes.extend_from_slice(field);
        }
        bytes
    }

    pub(super) async fn read(control: &mut UnixStream) -> io::Result<Request> {
        let mut fields: [Vec<u8>; 7] = Default::default();
        for field in &mut fields {
            *field = read_field(control).await?;
        }
        Request::of_fields(fields).ok_or_else(|| io::ErrorKind::InvalidData.into())
    }

    /// A malformed sandbox must not be treated as none.
    fn of_fields(fields: [Vec<u8>; 7]) -> Option<Request> {
        let [command, directory, variables, agent, expected, quarantine, sandbox] = fields;
        let mut rest = &variables[..];
        let variables = take_variables(&mut rest).filter(|_| rest.is_empty())?;
        let sandbox = match &sandbox[..] {
            [] => None,
            bytes => Some(ResolvedSandbox::decode(bytes)?),
        };
        let texts = [command, directory, agent, expected, quarantine].map(OsString::from_vec);
        let [command, directory, agent, expected, quarantine] = texts;
        Some(Request { command, directory, variables, agent, expected, quarantine, sandbox })
    }
}

async fn read_field(control: &mut UnixStream) -> io::Result<Vec<u8>> {
    let length = control.read_u64_le().await?;
    let mut field = Vec::new();
    control.take(length).read_to_end(&mut field).await?;
    if field.len() as u64 != length {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(field)
}

/// What was written with approval at a path that commands were not to write, sent when it is done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Approved {
    /// A file with this content. A command that runs meanwhile may have put another one there.
    Content(ContentHash),
    /// Whatever is found there.
    Anything,
}

impl Approved {
    /// In the place of a hash.
    const ANYTHING: &str = "anything";

    pub(crate) fn encode(&self) -> String {
        match self {
            Approved::Content(hash) => hash.to_string(),
            Approved::Anything => Approved::ANYTHING.to_owned(),
        }
    }

    /// Waits until the program has closed its end. `None` if nothing was written.
    pub(super) async fn read(control: &mut UnixStream) -> Option<Approved> {
        /// Longer than any hash.
        const LIMIT: u64 = 256;
        let mut text = String::new();
        control.take(LIMIT).read_to_string(&mut text).await.ok()?;
        match &*text {
            "" => None,
            Approved::ANYTHING => Some(Approved::Anything),
            _ => Some(Approved::Content(text.into())),
        }
    }
}

/// How a command ended, sent as a line through its control socket.
#[derive(Debug, PartialEq)]
pub(crate) enum Status {
    Exited(i32),
    Killed(i32),
    NotStarted(String),
}

/// Encodes a line about protected paths. It comes before the status, or after it for background
/// processes.
pub(super) fn encode_note(note: &Note) -> Vec<u8> {
    one_line(&format!("note {} {}", note.id.as_deref().unwrap_or(NO_ID), note.text))
}

/// Decodes such a line; `None` for any other.
pub(crate) fn decode_note(line: &[u8]) -> Option<Note> {
    let line = line.strip_suffix(b"\n")?.strip_prefix(b"note ")?;
    let line = String::from_utf8_lossy(line);
    let (id, text) = line.split_once(' ')?;
    Some(Note { id: (id != NO_ID).then(|| id.to_owned()), text: text.to_owned() })
}

/// Stands for a missing id, if nothing can be put back.
const NO_ID: &str = "-";

fn one_line(text: &str) -> Vec<u8> {
    let mut line = text.replace('\n', " ");
    line.truncate(line.floor_char_boundary(STATUS_LIMIT - 1));
    line.push('\n');
    line.into_bytes()
}

/// The maximum length of a line.
pub(crate) const STATUS_LIMIT: usize = 1_024;

impl Status {
    pub(super) fn encode(&self) -> Vec<u8> {
        one_line(&match self {
            Status::Exited(code) => format!("exited {code}"),
            Status::Killed(signal) => format!("killed {signal}"),
            Status::NotStarted(reason) => format!("failed {reason}"),
        })
    }

    /// `None` until the line is complete.
    pub(crate) fn decode(bytes: &[u8]) -> Option<Status> {
        let line = String::from_utf8_lossy(bytes.strip_suffix(b"\n")?);
        let (word, rest) = line.split_once(' ')?;
        match word {
            "exited" => rest.parse().ok().map(Status::Exited),
            "killed" => rest.parse().ok().map(Status::Killed),
            "failed" => Some(Status::NotStarted(rest.to_owned())),
            _ => None,
        }
    }
}

impl From<ExitStatus> for Status {
    fn from(status: ExitStatus) -> Status {
        match (status.code(), status.signal()) {
            (Some(code), _) => Status::Exited(code),
            (None, signal) => Status::Killed(signal.unwrap_or(0)),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;
    use std::os::unix::ffi::OsStringExt;
    use std::os::unix::process::ExitStatusExt;
    use std::process::ExitStatus;

    use tokio::io::AsyncWriteExt;
    use tokio::net::UnixStream;

    use super::{Request, ResolvedSandbox, STATUS_LIMIT, Status};
    use crate::sandbox::{Kind, Sandbox};

    /// The request that the watchdog decodes from these bytes.
    fn received(bytes: &[u8]) -> Option<Request> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let (mut program, mut watchdog) = UnixStream::pair().unwrap();
            let send = async {
                program.write_all(bytes).await.unwrap();
                drop(program);
            };
            let ((), request) = tokio::join!(send, Request::read(&mut watchdog));
            request.ok()
        })
    }

    fn request(command: &[u8], directory: &[u8]) -> Vec<u8> {
        let text = |bytes: &[u8]| OsString::from_vec(bytes.to_vec());
        let (command, directory) = (text(command), text(directory));
        let (variables, agent) = (Vec::new(), "0/".into());
        let [expected, quarantine] = [OsString::new(), OsString::new()];
        let sandbox = None;
        Request { command, directory, variables, agent, expected, quarantine, sandbox }.encode()
    }

    #[test]
    fn a_request_arrives_as_it_was_sent() {
        #[track_caller]
        fn check(command: &[u8], directory: &[u8]) {
            let received = received(&request(command, directory)).unwrap();
            assert!(received.command.into_vec() == command);
            assert!(received.directory.into_vec() == directory);
        }
        check(b"", b"");
        check(b"echo 'a\nb' \"$x\"", b"/tmp");
        check(b"\xff\xfe", b"/caf\xe9");
        check(&[b'x'; 500_000], &[b'/'; 5_000]);
    }

    #[test]
    fn a_truncated_request_is_none() {
        let whole = request(b"echo", b"/tmp");
        for length in 0..whole.len() {
            assert!(received(&whole[..length]).is_none(), "{length} bytes");
        }
        assert!(received(&u64::MAX.to_le_bytes()).is_none());
    }

    #[test]
    fn a_malformed_sandbox_is_not_the_same_as_none() {
        let kind = Kind::Landlock;
        let sandbox = Sandbox { kind: Some(kind), ..Sandbox::default() };
        let resolved = ResolvedSandbox { kind, sandbox };
        let mut request = Request {
            command: "x".into(),
            directory: "/".into(),
            variables: vec![("NAME".into(), "value".into())],
            agent: "0/".into(),
            expected: "/e".into(),
            quarantine: "/q".into(),
            sandbox: Some(resolved.clone()),
        };
        let bytes = request.encode();
        let whole = received(&bytes).unwrap();
        assert_eq!((whole.sandbox, whole.variables), (Some(resolved), request.variables));
        request.variables = Vec::new();
        request.sandbox = None;
        assert_eq!(received(&request.encode()).unwrap().sandbox, None);
        let before_sandbox = request.encode().len() - 8;
        let broken =
            [request.encode()[..before_sandbox].to_vec(), 1_u64.to_le_bytes().to_vec(), vec![0]];
        assert!(received(&broken.concat()).is_none());
        for length in 0..bytes.len() {
            assert!(received(&bytes[..length]).is_none(), "{length} bytes");
        }
    }

    #[test]
    fn a_status_arrives_as_it_was_sent() {
        for status in [
            Status::Exited(0),
            Status::Exited(255),
            Status::Killed(9),
            Status::NotStarted(String::new()),
            Status::NotStarted("No such file or directory (os error 2)".to_owned()),
        ] {
            let line = status.encode();
            assert_eq!(Status::decode(&line), Some(status));
            for length in 0..line.len() {
                assert_eq!(Status::decode(&line[..length]), None);
            }
        }
    }

    #[test]
    fn a_status_is_one_line_within_its_limit() {
        for reason in ["two\nlines".to_owned(), "ä".repeat(5_000), "\n".repeat(5_000)] {
            let line = Status::NotStarted(reason).encode();
            assert!(line.len() <= STATUS_LIMIT, "{} bytes", line.len());
            assert_eq!(line.iter().filter(|&&byte| byte == b'\n').count(), 1);
            assert!(matches!(Status::decode(&line), Some(Status::NotStarted(_))));
        }
    }

    #[test]
    fn an_end_is_an_exit_or_a_signal() {
        assert_eq!(Status::from(ExitStatus::from_raw(3 << 8)), Status::Exited(3));
        assert_eq!(Status::from(ExitStatus::from_raw(9)), Status::Killed(9));
        assert_eq!(Status::from(ExitStatus::from_raw(11 | 0x80)), Status::Killed(11));
    }
}
