//! Fairness in a data center (M. Hagen, University of New Hampshire 2012: "002").
