//! Measurements of **batchla** on a GPU: the figures of Liu, Zhao, Huang, Yu and Zhang 2023 drawn again, and how long a first result takes.
//!
//! | question | file |
//! | --- | --- |
//! | what does each figure compare, and what does the paper say about it? | `paper.rs` |
//! | how long does one contestant take, and is its result right? | `measure.rs`, the middle of a sample in `sample.rs` |
//! | who else can do it? | `peers.rs`: cuBLAS, found when the program runs |
//! | in which order, for how long, and where do the numbers go? | `campaign.rs`, `record.rs` |
//! | what does it look like, and does it agree with the paper? | `plot.rs`, `verdict.rs`, `readme.rs` |
//! | how long does a program wait for its first inverse? | `start.rs` |

mod campaign;
mod measure;
mod paper;
mod peers;
mod plot;
mod readme;
mod record;
mod results;
mod sample;
mod start;
mod verdict;

pub use crate::campaign::{Campaign, ORDERS};
pub use crate::measure::Timing;
pub use crate::paper::{Claim, Contestant, Figure, Routine, Says, Series, Shows};
pub use crate::plot::draw;
pub use crate::readme::{Receipt, readme};
pub use crate::record::{HEADER, Table, default_folder};
pub use crate::results::{Results, Row};
pub use crate::sample::Sample;
pub use crate::start::{Start, cold, start};
pub use crate::verdict::{Verdict, verdict};
