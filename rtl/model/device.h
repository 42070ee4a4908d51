// C interface of a simulated Axon device: the gates of rtl/device, compiled by Verilator.
//
// One shared library holds one hop width: libaxon_rtl_4.so, libaxon_rtl_8.so, libaxon_rtl_16.so.
// crates/rtl/src/model.rs is the other side. A change of a structure or of the meaning of a call
// changes AXON_RTL_VERSION in both.

#ifndef AXON_RTL_DEVICE_H
#define AXON_RTL_DEVICE_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

#define AXON_RTL_VERSION 2u
// Ports in the structures below; a device may have fewer.
#define AXON_RTL_PORTS 4

typedef struct axon_rtl_device axon_rtl_device;

// Size of a device.
typedef struct {
    uint32_t ports;
    uint32_t hop_bits;
    uint32_t buffer_bytes; // of the buffer of one ingress at one output
    uint32_t routes;       // of one port
} axon_rtl_parameters;

// Levels of the input pins in one clock cycle, 0 or 1 but for data. A symbol is a byte, or with bit 8 the end of a
// frame, whose bit 0 is 1 if the frame is bad.
typedef struct {
    uint8_t rxd[AXON_RTL_PORTS];
    uint8_t rx_dv[AXON_RTL_PORTS];
    uint8_t rx_er[AXON_RTL_PORTS];
    uint8_t link_up[AXON_RTL_PORTS];
    uint32_t reg_write_data;
    uint16_t reg_address; // of a register of 32 bits, in words
    uint8_t reg_write;    // for one cycle
    uint8_t reg_read;     // for one cycle; the value is in reg_read_data two cycles later
    uint8_t punt_ready;   // takes the symbol of this cycle
    uint8_t inject_valid; // the symbol is taken in a cycle with inject_ready
    uint16_t inject_symbol;
} axon_rtl_inputs;

// Levels of the output pins in the same cycle, just before the clock edge that ends it.
typedef struct {
    uint8_t txd[AXON_RTL_PORTS];
    uint8_t tx_en[AXON_RTL_PORTS];
    uint8_t tx_er[AXON_RTL_PORTS];
    uint32_t reg_read_data;
    uint8_t punt_valid;
    uint8_t inject_ready;
    uint16_t punt_symbol;
} axon_rtl_outputs;

// Returns AXON_RTL_VERSION of the library.
uint32_t axon_rtl_version(void);

// Returns the size of the devices of the library.
axon_rtl_parameters axon_rtl_size(void);

// Returns a device after its reset; NULL without memory. It belongs to the caller. Devices share
// no state.
axon_rtl_device *axon_rtl_new(void);

// Ends a device.
void axon_rtl_free(axon_rtl_device *device);

// Makes the device run all its clocks from now on. Otherwise it stops those of parts in which
// nothing changes, which is much faster and makes no difference at the pins.
void axon_rtl_run_all_clocks(axon_rtl_device *device);

// Runs one clock cycle.
void axon_rtl_step(axon_rtl_device *device, const axon_rtl_inputs *inputs,
                   axon_rtl_outputs *outputs);

// Runs up to `cycles` clock cycles with these inputs, which must have no frame, no request and no
// symbol; ends early with a cycle in which a port sends or a symbol is punted. Returns the number
// of cycles, and in `outputs` the pins of the last one.
uint64_t axon_rtl_step_many(axon_rtl_device *device, const axon_rtl_inputs *inputs,
                            axon_rtl_outputs *outputs, uint64_t cycles);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif
