//! What the tuner may choose from: the planner's families, and the numbers that each may be given.

use batchla_core::{Operation, Options, Plan, Problem};

use super::{BLOCKED, CudaPlan, LEFT_LOOKING, RESIDENT};
use crate::limits::Limits;

/// A number of a plan, and the values worth trying, ascending.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Axis {
    /// As in a plan's name: `panel`.
    pub key: &'static str,
    /// What it may be.
    pub values: &'static [usize],
    /// Whether it is tried from the start, in all combinations; otherwise only around the best.
    pub coarse: bool,
}

/// A family and its numbers. A plan of it names some; the table has the rest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Space {
    /// The family's name.
    pub family: &'static str,
    /// Its numbers.
    pub axes: &'static [Axis],
}

const fn coarse(key: &'static str, values: &'static [usize]) -> Axis {
    Axis { key, values, coarse: true }
}

const fn fine(key: &'static str, values: &'static [usize]) -> Axis {
    Axis { key, values, coarse: false }
}

const ON_CHIP_INVERSE: &[Axis] = &[
    coarse("panel", &[4, 8, 16, 32]),
    coarse("helpers", &[0, 1, 2, 3]),
    fine("rows", &[1, 2, 4]),
    fine("registers", &[64, 80, 96, 112, 128, 168, 255]),
    fine("tensor", &[0, 1]),
    fine("teams", &[1, 2, 4, 8, 16]),
    fine("window", &[0, 16, 20, 24, 28, 32, 40, 48, 56, 64, 72]),
    fine("inverse-window", &[0, 8, 16, 24, 32, 48]),
    fine("inverse-rows", &[1, 2, 4]),
    fine("inverse-blocks", &[1, 2, 3, 4, 6, 8]),
];

/// The same but for the three numbers that inversion alone has.
const ON_CHIP: &[Axis] = ON_CHIP_INVERSE.split_at(ON_CHIP_INVERSE.len() - 3).0;

const STREAMED: &[Axis] = &[
    coarse("panel", &[4, 8, 12, 16]),
    coarse("rows", &[1, 2, 4]),
    fine("ahead", &[2, 4, 8]),
    fine("stages", &[0, 2, 3, 4]),
    fine("tensor", &[0, 1]),
    fine("registers", &[64, 80, 96, 128, 168, 255]),
];

const STREAMED_INVERSE: &[Axis] = &[
    coarse("panel", &[4, 8, 16]),
    coarse("inverse-window", &[0, 16, 32]),
    fine("rows", &[1, 2, 4]),
    fine("ahead", &[2, 4, 8]),
    fine("stages", &[0, 2, 3, 4]),
    fine("tensor", &[0, 1]),
    fine("registers", &[64, 80, 96, 128, 168, 255]),
    fine("inverse-block", &[4, 8, 16]),
    fine("inverse-rows", &[1, 2, 4]),
    fine("inverse-blocks", &[1, 2, 3, 4, 6, 8]),
];

const STRIPS: &[Axis] = &[
    coarse("width", &[32, 48, 64, 80, 96, 112, 128]),
    coarse("panel", &[4, 8, 16]),
    fine("rows", &[1, 2, 4]),
    fine("registers", &[64, 80, 96, 128, 168]),
    fine("together", &[1, 2]),
    fine("finish", &[0, 128, 160, 192, 208, 224, 256]),
    fine("tile", &[32, 64]),
    fine("tile-rows", &[1, 2]),
    fine("tile-ahead", &[2, 4]),
    fine("tile-blocks", &[2, 3, 4]),
];

impl Space {
    /// The families that the planner chooses between for many matrices, for an operation.
    pub fn of(operation: Operation) -> [Self; 3] {
        let (on_chip, streamed) =
            if operation == Operation::Invert { (ON_CHIP_INVERSE, STREAMED_INVERSE) } else { (ON_CHIP, STREAMED) };
        [
            Self { family: RESIDENT.name, axes: on_chip },
            Self { family: LEFT_LOOKING.name, axes: streamed },
            Self { family: BLOCKED.name, axes: STRIPS },
        ]
    }

    /// The plans to begin with: the family as the table has it, and all combinations of its coarse numbers.
    pub fn coarse(&self) -> Vec<String> {
        let mut names = vec![self.name(&[])];
        let mut all = vec![Vec::new()];
        for axis in self.axes.iter().filter(|axis| axis.coarse) {
            let with =
                |numbers: &Vec<_>| axis.values.iter().map(|&v| [&numbers[..], &[(axis.key, v)]].concat()).collect();
            all = all.iter().flat_map(|numbers| -> Vec<Vec<(&str, usize)>> { with(numbers) }).collect();
        }
        names.extend(all.iter().map(|numbers| self.name(numbers)));
        names
    }

    /// The plans that differ from one of this family in one number: the next lower and higher value, or any where it names none.
    pub fn around(&self, plan: &str) -> Vec<String> {
        let (_, rest) = plan.split_once(':').unwrap_or((plan, ""));
        let given: Vec<(&str, usize)> = rest
            .split(',')
            .filter_map(|part| part.split_once('='))
            .filter_map(|(k, v)| Some((k, v.parse().ok()?)))
            .collect();
        let mut names = Vec::new();
        for axis in self.axes {
            let own = given.iter().find(|(key, _)| *key == axis.key).map(|(_, value)| *value);
            let near = |value: usize| match own {
                None => true,
                Some(own) => {
                    let below = axis.values.iter().rev().find(|v| **v < own);
                    let above = axis.values.iter().find(|v| **v > own);
                    below == Some(&value) || above == Some(&value)
                }
            };
            for &value in axis.values.iter().filter(|value| near(**value)) {
                let mut numbers: Vec<_> = given.iter().copied().filter(|(key, _)| *key != axis.key).collect();
                numbers.push((axis.key, value));
                // One name for a plan, whatever the way to it.
                numbers.sort_by_key(|(key, _)| self.axes.iter().position(|axis| axis.key == *key));
                names.push(self.name(&numbers));
            }
        }
        names
    }

    fn name(&self, numbers: &[(&str, usize)]) -> String {
        let numbers: Vec<_> = numbers.iter().map(|(key, value)| format!("{key}={value}")).collect();
        if numbers.is_empty() { self.family.to_owned() } else { format!("{}:{}", self.family, numbers.join(",")) }
    }
}

impl CudaPlan {
    /// The plan of a name as the tuner tells plans apart: by all numbers. None where the GPU has no room for it, a number does not fit, or the
    /// name's family turns into another.
    pub fn distinct(problem: &Problem, name: &str, limits: &Limits) -> Option<String> {
        let plan = Self::choose(problem, &Options::default().with_plan(name), limits).ok()?;
        let family = name.split_once(':').map_or(name, |(family, _)| family);
        (plan.name() == family || plan.resident.is_some()).then(|| plan.to_string())
    }
}
