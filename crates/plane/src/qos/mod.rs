//! Quality of service: traffic classes and their scheduling, priority flow control, targeted flow
//! control, the watchdog of paused queues.

pub(crate) mod admission;
mod class_map;
pub mod dcb;
pub(crate) mod dcb_state;
pub mod flow_control;
pub(crate) mod port_pauses;
pub mod schedule;
pub mod targeted;
pub mod watchdog;
