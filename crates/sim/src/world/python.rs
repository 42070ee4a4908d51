//! Control programs in Python, which the simulator does not start itself.

use axon_pipeline::Program;
use axon_programs::Site;
use std::path::Path;
use std::sync::Arc;

/// Starts a control program in Python: its file, and its place in the network.
pub type PythonLoader = Arc<dyn Fn(&Path, Site) -> Box<dyn Program> + Send + Sync>;
