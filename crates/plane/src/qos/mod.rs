//! Quality of service: traffic classes and their scheduling, priority flow control, targeted flow
//! control, the watchdog of paused queues.

pub mod dcb;
pub mod flow_control;
pub mod schedule;
pub mod targeted;
pub mod watchdog;
