// C interface of a simulated Axon device; see device.h. Built once for each hop width.

#include "device.h"

#include <memory>
#include <new>

#include "Vaxon_device.h"
#include "verilated.h"

namespace {

constexpr int RESET_CYCLES = 8;
static_assert(AXON_PORTS <= AXON_RTL_PORTS, "more ports than the interface has");

// Returns one bit for each port whose byte is not 0.
uint32_t mask(const uint8_t (&levels)[AXON_RTL_PORTS]) {
    uint32_t bits = 0;
    for (int port = 0; port < AXON_PORTS; port++) bits |= uint32_t(levels[port] != 0) << port;
    return bits;
}

uint32_t word(const uint8_t (&bytes)[AXON_RTL_PORTS]) {
    uint32_t all = 0;
    for (int port = 0; port < AXON_PORTS; port++) all |= uint32_t(bytes[port]) << (8 * port);
    return all;
}

}  // namespace

struct axon_rtl_device {
    VerilatedContext context;
    std::unique_ptr<Vaxon_device> top;

    axon_rtl_device() : top(new Vaxon_device(&context)) {
        const axon_rtl_inputs none = {};
        axon_rtl_outputs ignored;
        top->rst = 1;
        for (int cycle = 0; cycle < RESET_CYCLES; cycle++) step(none, ignored);
        top->rst = 0;
    }

    ~axon_rtl_device() { top->final(); }

    void step(const axon_rtl_inputs &inputs, axon_rtl_outputs &outputs) {
        top->rxd = word(inputs.rxd);
        top->rx_dv = mask(inputs.rx_dv);
        top->rx_er = mask(inputs.rx_er);
        top->link_up = mask(inputs.link_up);
        top->reg_address = inputs.reg_address;
        top->reg_write = inputs.reg_write;
        top->reg_write_data = inputs.reg_write_data;
        top->reg_read = inputs.reg_read;
        top->punt_ready = inputs.punt_ready;
        top->inject_valid = inputs.inject_valid;
        top->inject_symbol = inputs.inject_symbol;
        top->clk = 0;
        top->eval();
        for (int port = 0; port < AXON_PORTS; port++) {
            outputs.txd[port] = uint8_t(top->txd >> (8 * port));
            outputs.tx_en[port] = top->tx_en >> port & 1;
            outputs.tx_er[port] = top->tx_er >> port & 1;
        }
        for (int port = AXON_PORTS; port < AXON_RTL_PORTS; port++)
            outputs.txd[port] = outputs.tx_en[port] = outputs.tx_er[port] = 0;
        outputs.reg_read_data = top->reg_read_data;
        outputs.punt_valid = top->punt_valid;
        outputs.punt_symbol = top->punt_symbol;
        outputs.inject_ready = top->inject_ready;
        top->clk = 1;
        top->eval();
    }
};

uint32_t axon_rtl_version(void) { return AXON_RTL_VERSION; }

axon_rtl_parameters axon_rtl_size(void) {
    return {AXON_PORTS, AXON_HOP_BITS, AXON_BUFFER_BYTES, AXON_ROUTES};
}

axon_rtl_device *axon_rtl_new(void) {
    try {
        return new axon_rtl_device;
    } catch (...) {  // no exception may leave a C function
        return nullptr;
    }
}

void axon_rtl_free(axon_rtl_device *device) { delete device; }

void axon_rtl_step(axon_rtl_device *device, const axon_rtl_inputs *inputs,
                   axon_rtl_outputs *outputs) {
    device->step(*inputs, *outputs);
}

uint64_t axon_rtl_step_many(axon_rtl_device *device, const axon_rtl_inputs *inputs,
                            axon_rtl_outputs *outputs, uint64_t cycles) {
    uint64_t done = 0;
    while (done < cycles) {
        device->step(*inputs, *outputs);
        done++;
        if (outputs->punt_valid || mask(outputs->tx_en)) break;
    }
    return done;
}
