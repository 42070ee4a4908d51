//! Fast forwarding on Myrinet (Yocum and Chase, Duke: "003"): payload caching.

pub mod fig4;
pub mod fig6_7;
pub mod live;
mod machine;
pub mod table2;
