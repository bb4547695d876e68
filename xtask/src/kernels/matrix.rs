//! Which kernels are compiled, for which GPUs, by which compilers.

use std::collections::BTreeMap;
use std::error::Error;

use batchla::{Options, Problem};
use batchla_cuda::{CudaPlan, Limits, Specification};
use batchla_testkit::Scope;

use super::problems::{COLUMNS_FIRST, COMPARED, EVERY, ROWS_FIRST};

/// A compiler and the GPUs it is asked to compile for. NVRTC 13 has given up `sm_70`.
pub(super) const COMPILERS: [(&str, &[&str]); 2] = [
    ("NVRTC 12.9", &["sm_70", "sm_80", "sm_90", "sm_100", "sm_120"]),
    ("NVRTC 13.0", &["sm_80", "sm_90", "sm_100", "sm_120"]),
];

/// Orders that reach every row of the planner's tables, odd columns of doubles, and what comes after the last.
const ORDERS: [usize; 30] = [
    4, 8, 16, 32, 40, 48, 63, 64, 80, 88, 95, 96, 104, 112, 128, 136, 144, 160, 168, 190, 200, 232, 256, 300, 352, 448,
    512, 1024, 2048, 3000,
];

/// Those at which matrices with rows first are compiled too: such kernels differ only where they read and write.
const ORDERS_OF_ROWS: [usize; 3] = [32, 128, 512];

/// The order of the plans made for comparison.
const COMPARED_ORDER: usize = 128;

/// Up to this order the planner's own plans must not spill on `sm_80` and newer.
const PROMISED: usize = 1024;

/// One compilation.
pub(super) struct Needed {
    pub(super) specification: Specification,
    pub(super) architecture: &'static str,
    pub(super) nvrtc: String,
    /// As the cache of compiled kernels names it.
    pub(super) digest: batchla_cuda::Digest,
    /// Its symbols in the planner's own plans: the orders up to [`PROMISED`] that need them.
    pub(super) promised: BTreeMap<String, Vec<usize>>,
}

impl Needed {
    /// The digest's beginning: enough to tell some thousand kernels apart.
    pub(super) fn key(&self) -> String {
        let mut key = self.digest.to_string();
        key.truncate(16);
        key
    }

    /// Its constants, as records have them.
    pub(super) fn constants(&self) -> String {
        let constants = self.specification.constants().iter();
        let constants: Vec<_> =
            constants.map(|(name, value)| format!("{}={value}", name.trim_start_matches("BATCHLA_"))).collect();
        constants.join(" ")
    }
}

/// Everything that is recorded.
pub(super) fn recorded() -> Result<Vec<Needed>, Box<dyn Error>> {
    let mut all = Matrix::default();
    for (nvrtc, architectures) in COMPILERS {
        for &architecture in architectures {
            for order in ORDERS {
                for (columns_first, rows_first) in COLUMNS_FIRST.into_iter().zip(ROWS_FIRST) {
                    all.add(nvrtc, architecture, &columns_first(order)?, None)?;
                    if ORDERS_OF_ROWS.contains(&order) {
                        all.add(nvrtc, architecture, &rows_first(order)?, None)?;
                    }
                }
            }
            // One compiler's are enough here: the last that compiles for it.
            let last = COMPILERS.iter().rfind(|(_, architectures)| architectures.contains(&architecture));
            if last.is_some_and(|(last, _)| *last != nvrtc) {
                continue;
            }
            for name in CudaPlan::NAMES {
                for compared in COMPARED {
                    all.add(nvrtc, architecture, &compared(COMPARED_ORDER)?, Some(name))?;
                }
            }
        }
    }
    Ok(all.needed)
}

/// Everything that the conformance suite may load on a GPU, but kernels of one order alone. What is missing here is compiled there.
pub(super) fn conformance(nvrtc: &str, architecture: &'static str) -> Result<Vec<Needed>, Box<dyn Error>> {
    /// Orders that single checks use beside their scope's.
    const OWN: [usize; 5] = [4, 9, 33, 40, 200];
    let forced = CudaPlan::NAMES.iter().copied().chain([
        "resident:panel=4,helpers=2",
        "resident:panel=8,window=16,helpers=1",
        "left-looking:panel=14,inverse-block=20",
        "left-looking:panel=4,rows=2,inverse-rows=2,inverse-block=5",
        "left-looking:stages=0,ahead=2,panel=4",
        "multi-kernel-two-level:width=16,together=2",
    ]);
    let forced = forced.map(|plan| (Some(plan), Scope::QUICK));
    let mut all = Matrix { any_order: true, ..Matrix::default() };
    for (plan, scope) in std::iter::once((None, Scope::FULL)).chain(forced) {
        for &order in scope.orders.iter().chain(&OWN) {
            for every in EVERY {
                all.add(nvrtc, architecture, &every(order)?, plan)?;
            }
        }
    }
    Ok(all.needed)
}

/// Compilations in order of first need, each once.
#[derive(Default)]
struct Matrix {
    /// Whether no kernel is for one order alone.
    any_order: bool,
    needed: Vec<Needed>,
    places: BTreeMap<String, usize>,
}

impl Matrix {
    fn add(
        &mut self,
        nvrtc: &str,
        architecture: &'static str,
        problems: &[Problem],
        plan: Option<&str>,
    ) -> Result<(), Box<dyn Error>> {
        let mut limits = Limits::preset(architecture).ok_or("no preset of that architecture")?;
        limits.exact_orders &= !self.any_order;
        let options = plan.map_or(Options::default(), |name| Options::default().with_plan(name));
        for problem in problems {
            let order = problem.order();
            for specification in CudaPlan::choose(problem, &options, &limits)?.specifications(problem) {
                let digest = specification.digest(architecture, nvrtc);
                let place = *self.places.entry(digest.to_string()).or_insert(self.needed.len());
                if place == self.needed.len() {
                    let (nvrtc, promised) = (nvrtc.to_owned(), BTreeMap::new());
                    let specification = specification.clone();
                    self.needed.push(Needed { specification, architecture, nvrtc, digest, promised });
                }
                if plan.is_none() && order <= PROMISED && architecture != "sm_70" {
                    let orders = self.needed[place].promised.entry(specification.entry().to_owned()).or_default();
                    if !orders.contains(&order) {
                        orders.push(order);
                    }
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn short_digests_tell_all_kernels_apart() {
        let all = recorded().unwrap();
        assert_eq!(all.iter().map(Needed::key).collect::<BTreeSet<_>>().len(), all.len());
    }

    #[test]
    fn each_compiler_gets_every_source_for_each_of_its_architectures() {
        let all = recorded().unwrap();
        for (nvrtc, architectures) in COMPILERS {
            for architecture in architectures {
                let here = all.iter().filter(|one| one.nvrtc == nvrtc && one.architecture == *architecture);
                let sources: BTreeSet<_> = here.map(|one| one.specification.source().name).collect();
                let plain = [
                    "det.cu",
                    "gesv.cu",
                    "getrf_finish.cu",
                    "getrf_getri.cu",
                    "getrf_getri_thread.cu",
                    "getrf_thread.cu",
                    "getrf_resident.cu",
                    "getrf_spread.cu",
                    "getrf_strip.cu",
                    "getrf_trailing.cu",
                    "getri.cu",
                    "getri_resident.cu",
                    "getrs.cu",
                    "getrs_resident.cu",
                    "outcome.cu",
                    "permutation.cu",
                ];
                // Plans made for comparison have one compiler each architecture.
                let last = COMPILERS.iter().rfind(|(_, architectures)| architectures.contains(architecture));
                let compared = ["getrf.cu", "getrf_steps.cu", "laswp.cu"]
                    .into_iter()
                    .filter(|_| last.is_some_and(|last| last.0 == nvrtc));
                let wanted: BTreeSet<_> = plain.into_iter().chain(compared).collect();
                assert_eq!(sources, wanted, "{nvrtc} {architecture}");
            }
        }
    }

    #[test]
    fn nothing_is_promised_of_plans_made_for_comparison_of_large_orders_and_of_the_oldest_gpu() {
        for one in recorded().unwrap() {
            let right_looking = ("BATCHLA_RIGHT_LOOKING".to_owned(), "1".to_owned());
            let compared = one.specification.source().name != "getrf_spread.cu"
                && one.specification.constants().contains(&right_looking);
            assert!(one.promised.is_empty() || !(compared || one.architecture == "sm_70"), "{}", one.specification);
            assert!(one.promised.values().flatten().all(|&order| order <= PROMISED));
        }
    }
}
