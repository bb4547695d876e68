//! A plan by name, with numbers of the caller's: `left-looking:panel=16,threads=128`.

use std::ops::RangeInclusive;

/// What was asked for.
#[derive(Debug, Default)]
pub(crate) struct Request<'a> {
    pub(crate) name: &'a str,
    numbers: Vec<(&'a str, usize)>,
}

/// The numbers that a plan may be given. One that is for a routine that a problem does not need is not used.
pub(super) const KEYS: [&str; 33] = [
    "panel",
    "ahead",
    "stages",
    "width",
    "together",
    "tile",
    "tile-rows",
    "tile-ahead",
    "tile-warps",
    "tile-blocks",
    "finish",
    "rows",
    "window",
    "helpers",
    "tensor",
    "exact",
    "threads",
    "teams",
    "blocks",
    "registers",
    "inverse-block",
    "inverse-window",
    "inverse-rows",
    "inverse-threads",
    "inverse-blocks",
    "inverse-parts",
    "inverse-copies",
    "solve-panel",
    "solve-columns",
    "solve-band",
    "solve-share",
    "solve-warps",
    "solve-blocks",
];

impl<'a> Request<'a> {
    /// Takes a request apart; the error says what is wrong with it.
    pub(crate) fn parse(text: &'a str) -> Result<Self, String> {
        let (name, rest) = text.split_once(':').unwrap_or((text, ""));
        let mut numbers: Vec<(&str, usize)> = Vec::new();
        for part in rest.split(',').filter(|part| !part.is_empty()) {
            let (key, value) = part.split_once('=').ok_or_else(|| format!("{part:?} is not of the form key=number"))?;
            if !KEYS.contains(&key) {
                return Err(format!("there is no number {key:?}; there are {}", KEYS.join(", ")));
            }
            if numbers.iter().any(|number| number.0 == key) {
                return Err(format!("{key} is given twice"));
            }
            numbers.push((key, value.parse().map_err(|_| format!("{value:?} is not a number"))?));
        }
        Ok(Self { name, numbers })
    }

    /// The number of that name within a range, if it was given.
    pub(crate) fn number(&self, key: &str, range: RangeInclusive<usize>) -> Result<Option<usize>, String> {
        match self.numbers.iter().find(|(name, _)| *name == key) {
            Some((_, value)) if !range.contains(value) => {
                Err(format!("{key}={value} is not between {} and {}", range.start(), range.end()))
            }
            given => Ok(given.map(|(_, value)| *value)),
        }
    }

    /// The number of that name within a range, or the planner's own.
    pub(crate) fn number_or(&self, key: &str, range: RangeInclusive<usize>, own: usize) -> Result<usize, String> {
        Ok(self.number(key, range)?.unwrap_or(own))
    }
}
