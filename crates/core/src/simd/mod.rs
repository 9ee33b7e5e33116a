//! Which instruction set this process uses, and how one generic source is compiled for each.
