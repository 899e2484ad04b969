//! How the context window of a model is divided.

use ikigai_conversation::KeptRoom;
use ikigai_providers::ModelFacts;

/// The least that is worth a summary, in tokens. With less, the model would forget what it is doing.
const LEAST: u64 = 400;

/// The context window of a model, with what takes a fixed part of it. All sizes are in tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Room {
    pub(crate) window: u64,
    /// Left free for the response.
    reserve: u64,
    /// The system prompt and the tools.
    pub(crate) fixed: u64,
}

impl Room {
    pub(crate) fn of(window: u64, facts: &ModelFacts, fixed: u64) -> Room {
        let fifth = window / 5;
        let reserve = facts.max_output.map_or(fifth, |most| most.min(fifth));
        Room { window, reserve, fixed }
    }

    fn usable(&self) -> u64 {
        self.window - self.reserve
    }

    /// Above this, room is made.
    pub(crate) fn limit(&self, percent: u64) -> u64 {
        (u128::from(self.usable()) * u128::from(percent) / 100) as u64
    }

    /// Making room has to get below this.
    pub(crate) fn target(&self) -> u64 {
        self.limit(60)
    }

    /// What a summary and everything beside it may have; `None` if that is too little.
    pub(crate) fn for_summary(&self) -> Option<SummaryRoom> {
        let rest = self.target().saturating_sub(self.fixed);
        (rest >= LEAST).then_some(SummaryRoom(rest))
    }

    /// How many tokens of the latest outputs stay whole when others are shortened.
    pub(crate) fn whole_outputs(&self) -> u64 {
        const MOST: u64 = 40_000;
        (self.window / 4).min(MOST)
    }

    /// The maximum size of one output.
    pub(crate) fn one_output(window: u64) -> u64 {
        window / 8
    }
}

/// What is left for a summary and what stays beside it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SummaryRoom(u64);

impl SummaryRoom {
    pub(crate) fn summary(self) -> u64 {
        self.0 / 4
    }

    pub(crate) fn obligations(self) -> u64 {
        self.0 / 6
    }

    /// The user's own messages, and the end of the current turn.
    pub(crate) fn kept(self) -> KeptRoom {
        const MOST_SAID: u64 = 20_000;
        KeptRoom { said: (self.0 / 3).min(MOST_SAID), tail: self.0 / 4 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_is_divided_as_promised() {
        let facts = |max_output| ModelFacts { max_output, ..ModelFacts::default() };
        let room = Room::of(200_000, &facts(Some(32_000)), 10_000);
        assert_eq!((room.limit(85), room.target()), (142_800, 100_800));
        assert_eq!(room.whole_outputs(), 40_000);
        let rest = room.for_summary().unwrap();
        assert_eq!((rest.summary(), rest.obligations()), (22_700, 15_133));
        assert_eq!(rest.kept(), KeptRoom { said: 20_000, tail: 22_700 });
        // The maximum output may be unknown, or larger than a fifth.
        for max_output in [None, Some(32_000)] {
            let room = Room::of(8_000, &facts(max_output), 2_000);
            assert_eq!(
                (room.limit(85), room.target(), room.whole_outputs()),
                (5_440, 3_840, 2_000)
            );
            let rest = room.for_summary().unwrap();
            assert_eq!(rest.kept(), KeptRoom { said: 613, tail: 460 });
        }
        assert_eq!(Room::of(8_000, &facts(None), 3_500).for_summary(), None);
        assert_eq!(Room::of(u64::MAX, &facts(None), 0).limit(100), u64::MAX - u64::MAX / 5);
    }
}
