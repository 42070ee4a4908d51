//! Runs a model, and reports its result.

use stateright::{Checker, Expectation, HasDiscoveries, Model};
use std::fmt::{self, Debug, Display};
use std::hash::Hash;
use std::time::{Duration, Instant};

/// Result of checking a model.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Name of the model.
    pub name: String,
    /// Number of distinct states.
    pub states: usize,
    /// Number of steps taken, including those to known states.
    pub steps: usize,
    /// Length of the longest path to a state, in steps.
    pub depth: usize,
    /// Duration of the run.
    pub took: Duration,
    /// True if every state was visited.
    pub complete: bool,
    /// Properties that are violated, each with the steps to a violation.
    pub broken: Vec<Broken>,
}

/// Property that is violated.
#[derive(Clone, Debug)]
pub struct Broken {
    /// Name of the property.
    pub property: &'static str,
    /// Steps from the start to a state that violates the property.
    pub steps: Vec<String>,
}

/// Visits every state of a model on `threads` threads. The search is depth first, which keeps few
/// states in memory.
pub fn run<M>(name: &str, model: M, threads: usize) -> Outcome
where
    M: Model + Send + Sync + 'static,
    M::State: Clone + Debug + Hash + PartialEq + Send + Sync + 'static,
    M::Action: Clone + Debug + PartialEq + Send + Sync + 'static,
{
    let began = Instant::now();
    outcome(name, began, &model.checker().threads(threads).spawn_dfs().join())
}

/// Visits the states of a model until a property is violated. The search is breadth first, which
/// gives a short path.
pub(crate) fn find<M>(name: &str, model: M, threads: usize) -> Outcome
where
    M: Model + Send + Sync + 'static,
    M::State: Clone + Debug + Hash + PartialEq + Send + Sync + 'static,
    M::Action: Clone + Debug + PartialEq + Send + Sync + 'static,
{
    let began = Instant::now();
    let builder = model.checker().threads(threads).finish_when(HasDiscoveries::AnyFailures);
    outcome(name, began, &builder.spawn_bfs().join())
}

fn outcome<M, C>(name: &str, began: Instant, checker: &C) -> Outcome
where
    M: Model,
    M::State: Clone + Debug + Hash + PartialEq,
    M::Action: Clone + Debug + PartialEq,
    C: Checker<M>,
{
    let properties = checker.model().properties();
    let found = checker.discoveries();
    let broken = properties.iter().filter_map(|property| {
        let (property, expected) = (property.name, property.expectation.clone());
        match (expected, found.get(property)) {
            (Expectation::Sometimes, None) => Some(Broken { property, steps: Vec::new() }),
            (Expectation::Sometimes, Some(_)) | (_, None) => None,
            (_, Some(path)) => {
                let actions = path.clone().into_actions();
                let steps = actions.iter().map(|action| format!("{action:?}")).collect();
                Some(Broken { property, steps })
            }
        }
    });
    Outcome {
        name: name.to_string(),
        states: checker.unique_state_count(),
        steps: checker.state_count(),
        depth: checker.max_depth(),
        took: began.elapsed(),
        complete: checker.is_done(),
        broken: broken.collect(),
    }
}

impl Outcome {
    /// Returns whether every state was visited and every property holds.
    pub fn is_proved(&self) -> bool {
        self.complete && self.broken.is_empty()
    }
}

impl Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let verdict = if self.is_proved() { "holds" } else { "BROKEN" };
        let Outcome { name, states, steps, depth, .. } = self;
        let seconds = self.took.as_secs_f64();
        write!(
            f,
            "{name:<34} {states:>9} states {steps:>10} steps  depth {depth:>3}  {seconds:>7.1} s  \
             {verdict}"
        )?;
        for Broken { property, steps } in &self.broken {
            write!(f, "\n  does not hold: {property}")?;
            for step in steps {
                write!(f, "\n    {step}")?;
            }
        }
        Ok(())
    }
}
