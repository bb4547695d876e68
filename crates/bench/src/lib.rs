//! Measurements of **batchla**: the figures of Liu, Zhao, Huang, Yu and Zhang 2023 drawn again, and how long a first result takes.
//!
//! | question | file |
//! | --- | --- |
//! | what does a figure compare, and what was claimed about it? | `figure.rs`; the paper's in `paper.rs`, ours in `contest.rs` |
//! | how long does one contestant take, and is its result right? | `measure.rs`, the middle of a sample in `sample.rs` |
//! | who else can do it? | `cublas.rs`, found when the program runs; `python.rs`, MAGMA and NumPy in a Python beside it |
//! | in which order, for how long, and where do the numbers go? | `campaign.rs`, `record.rs` |
//! | what does it look like, and does it agree with what was claimed? | `plot.rs`, `verdict.rs`, `page.rs` |
//! | how fast is any backend from host memory to host memory, and what would this machine allow? | `speed.rs`, `roof.rs` |
//! | which plan is fastest on this GPU at each order? | `tune/` |
//! | how long does a program wait for its first inverse? | `start.rs` |
//! | how much of the link is used from host memory to host memory, how long do many orders take, what do several GPUs give? | `host.rs`, `orders.rs`, `gpus.rs` |

mod campaign;
pub mod contest;
mod cublas;
mod figure;
mod gpus;
mod host;
mod measure;
mod orders;
mod page;
pub mod paper;
mod plot;
mod python;
mod record;
mod results;
mod roof;
mod sample;
mod speed;
mod start;
mod tune;
mod verdict;

pub use crate::campaign::Campaign;
pub use crate::figure::{Claim, Contestant, Figure, Routine, Says, Series, Shows};
pub use crate::gpus::{GPUS_HEADER, Gpus};
pub use crate::host::{HOST_HEADER, HostPath};
pub use crate::measure::Timing;
pub use crate::orders::{ORDERS_HEADER, Orders};
pub use crate::page::{Page, Receipt, text};
pub use crate::plot::draw;
pub use crate::record::{HEADER, Table, default_folder, measured};
pub use crate::results::{Results, Row};
pub use crate::sample::Sample;
pub use crate::speed::Speed;
pub use crate::start::{Start, cold, is_cold, start};
pub use crate::tune::{Proved, Tune, Tuning};
pub use crate::verdict::{Verdict, verdict};
