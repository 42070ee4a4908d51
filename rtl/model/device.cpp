// C interface of a simulated Axon device; see device.h. Built once for each hop width.
//
// A call runs the edge that begins its cycle, and thus the logic behind the registers that it
// changes; the pins of the cycle are registered with it (axon_model.sv). Of the device only the
// parts are run whose clocks run: see ../device/clock_gate.sv.

#include "device.h"

#include <cstddef>
#include <cstring>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <vector>

#include "Vaxon_model.h"
#include "Vaxon_model___024root.h"
#include "verilated.h"
#include "verilated_syms.h"

// Of the model that Verilator generates: finds the clocks that have risen; runs the logic of the
// clocks in __VnbaTriggered. `eval` would do the same, and search for more.
void Vaxon_model___024root___eval_triggers_vec__act(Vaxon_model___024root *);
void Vaxon_model___024root___eval_nba(Vaxon_model___024root *);

namespace {

constexpr int RESET_CYCLES = 8;
// Cycles for which a clock runs on at least.
constexpr uint64_t HOLD_CYCLES = 64;
// Bytes of the inputs from `link_up` on to `inject_valid`, and from there on.
constexpr size_t CONTROL_BYTES =
    offsetof(axon_rtl_inputs, inject_valid) - offsetof(axon_rtl_inputs, link_up);
constexpr size_t INJECT_BYTES = sizeof(axon_rtl_inputs) - offsetof(axon_rtl_inputs, inject_valid);
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

// Clocks of one clock_gate, bits from `shift` on in a set of clocks.
struct Gate {
    const uint8_t *active;
    unsigned shift;
};

// The clocks of a device. A set of them is in the order of the gates; `triggers` has it in the
// order of Verilator.
class Clocks {
public:
    // The clock of the input pins but GMII.
    static constexpr uint64_t PINS = 1;

    explicit Clocks(Vaxon_model &top) : root(*top.rootp) {
        add(top.clk, 1);
        for (const auto &[name, scope] : *top.contextp()->scopeNameMap()) {
            VerilatedVar *driven = scope->varFind("driven"), *active = scope->varFind("active");
            if (driven == nullptr || active == nullptr) continue;
            const std::string gate = name;
            for (int port = 0; port < AXON_PORTS; port++)
                if (ends_with(gate, "ports[" + std::to_string(port) + "].rx_gate"))
                    of_port[port] = uint64_t(1) << bits.size();
            gates.push_back({static_cast<uint8_t *>(active->datap()), unsigned(bits.size())});
            uint8_t &byte = *static_cast<uint8_t *>(driven->datap());
            for (int clock = 0; clock < 8; clock++) add(byte, 1 << clock);
        }
        for (uint64_t port : of_port)
            if (port == 0) throw std::logic_error("a port without a clock");
        run_all();
    }

    // Runs all clocks for HOLD_CYCLES.
    void run_all() { recent = ~uint64_t(0); }

    // Runs all clocks for ever.
    void never_stop() { is_gated = false; }

    // Returns the clock of the receiver of a port.
    uint64_t of(int port) const { return of_port[port]; }

    // Returns the clocks of the next edge, by Verilator's order: those of `wanted`, and those that
    // are active or have been.
    uint64_t next(uint64_t wanted) {
        if (!is_gated) return triggers(~uint64_t(0));
        for (const Gate &gate : gates) wanted |= uint64_t(*gate.active) << gate.shift;
        recent |= wanted;
        const uint64_t running = recent | held;
        if (--left == 0) {
            held = recent;
            recent = 0;
            left = HOLD_CYCLES;
        }
        return running == last ? last_triggers : triggers(running);
    }

private:
    Vaxon_model___024root &root;
    std::vector<Gate> gates;
    std::vector<uint64_t> bits; // trigger of each clock
    uint64_t of_port[AXON_PORTS] = {};
    // Clocks that were active in this period of HOLD_CYCLES, and in the one before.
    uint64_t recent = 0, held = 0, left = HOLD_CYCLES;
    uint64_t last = 0, last_triggers = 0;
    bool is_gated = true;

    static bool ends_with(const std::string &text, const std::string &end) {
        return text.size() >= end.size()
            && text.compare(text.size() - end.size(), end.size(), end) == 0;
    }

    // Adds the clock that this bit drives, if there is one.
    void add(uint8_t &byte, uint8_t bit) {
        byte = bit;
        Vaxon_model___024root___eval_triggers_vec__act(&root);
        const uint64_t trigger = root.__VactTriggered[0];
        byte = 0;
        Vaxon_model___024root___eval_triggers_vec__act(&root);
        if ((trigger & (trigger - 1)) != 0) throw std::logic_error("two triggers of one clock");
        if (trigger == 0) return;
        if (bits.size() == 64) throw std::logic_error("more clocks than bits");
        bits.push_back(trigger);
    }

    uint64_t triggers(uint64_t clocks) {
        last = clocks;
        last_triggers = 0;
        for (size_t at = 0; at < bits.size(); at++)
            if (clocks >> at & 1) last_triggers |= bits[at];
        return last_triggers;
    }
};

}  // namespace

struct axon_rtl_device {
    VerilatedContext context;
    std::unique_ptr<Vaxon_model> top;
    std::unique_ptr<Clocks> clocks;
    axon_rtl_inputs last = {};

    axon_rtl_device() : top(new Vaxon_model(&context)) {
        top->eval();
        clocks.reset(new Clocks(*top));
        const axon_rtl_inputs none = {};
        top->rst = 1;
        for (int cycle = 0; cycle < RESET_CYCLES; cycle++) edge(none);
        top->rst = 0;
        clocks->run_all();
    }

    ~axon_rtl_device() { top->final(); }

    void step(const axon_rtl_inputs &inputs, axon_rtl_outputs &outputs) {
        edge(inputs);
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
    }

    // Runs the edge with which these inputs are registered.
    void edge(const axon_rtl_inputs &inputs) {
        uint64_t wanted = 0;
        top->rxd = word(inputs.rxd);
        top->rx_dv = mask(inputs.rx_dv);
        top->rx_er = mask(inputs.rx_er);
        for (int port = 0; port < AXON_PORTS; port++)
            if (inputs.rx_dv[port]) wanted |= clocks->of(port);
        // An injected frame wakes its parts only; all else may change anything.
        if (std::memcmp(&inputs.link_up, &last.link_up, CONTROL_BYTES + INJECT_BYTES) != 0) {
            if (std::memcmp(&inputs.link_up, &last.link_up, CONTROL_BYTES) != 0)
                clocks->run_all();
            wanted |= Clocks::PINS;
            last = inputs;
            top->link_up = mask(inputs.link_up);
            top->reg_address = inputs.reg_address;
            top->reg_write = inputs.reg_write;
            top->reg_write_data = inputs.reg_write_data;
            top->reg_read = inputs.reg_read;
            top->punt_ready = inputs.punt_ready;
            top->inject_valid = inputs.inject_valid;
            top->inject_symbol = inputs.inject_symbol;
        }
        top->rootp->__VnbaTriggered[0] = clocks->next(wanted);
        Vaxon_model___024root___eval_nba(top->rootp);
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

void axon_rtl_run_all_clocks(axon_rtl_device *device) { device->clocks->never_stop(); }

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
