// The parts of the generated model; see parts.py.

#ifndef AXON_RTL_PARTS_H
#define AXON_RTL_PARTS_H

#include <cstdint>

class Vaxon_model___024root;

// Logic that belongs to clocks: to be run when one of them rises, in the order of PARTS.
struct Part {
    uint64_t clocks; // bits in Verilator's order
    void (*run)(Vaxon_model___024root *);
};

// All parts; a null function ends them.
extern const Part PARTS[];

#endif
