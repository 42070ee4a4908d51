//! Python control programs, which the simulator does not start itself.

use axon_pipeline::Program;
use axon_programs::Site;
use std::path::Path;
use std::sync::Arc;

/// Function that starts a Python control program, given its file and its site in the network.
pub type PythonLoader = Arc<dyn Fn(&Path, Site) -> Box<dyn Program> + Send + Sync>;
