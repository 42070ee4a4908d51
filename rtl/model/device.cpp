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
#include "parts.h"
#include "verilated.h"
#include "verilated_syms.h"

// Of the model that Verilator generates: finds the clocks that have risen.
void Vaxon_model___024root___eval_triggers_vec__act(Vaxon_model___024root *);

namespace {

constexpr int RESET_CYCLES = 8;
// Cycles for which a clock runs on at least.
constexpr uint64_t HOLD_CYCLES = 64;
// Bytes of the inputs from `link_up` on to `inject_valid`, and from there on.
constexpr size_t CONTROL_BYTES =
    offsetof(axon_rtl_inputs, inject_valid) - offsetof(axon_rtl_inputs, link_up);
constexpr size_t INJECT_BYTES = sizeof(axon_rtl_inputs) - offsetof(axon_rtl_inputs, inject_valid);
constexpr uint32_t PORTS_MASK = (1u << AXON_PORTS) - 1;
static_assert(AXON_PORTS <= AXON_RTL_PORTS, "more ports than the interface has");

// Returns bytes as a word, that of port 0 lowest.
uint32_t word(const uint8_t (&bytes)[AXON_RTL_PORTS]) {
    static_assert(AXON_RTL_PORTS == sizeof(uint32_t), "a byte for each port");
    uint32_t all;
    std::memcpy(&all, bytes, sizeof all);
    return all;
}

// Returns levels as one bit for each port: the product moves that of port p from bit 8 p to 24 + p.
uint32_t mask(const uint8_t (&levels)[AXON_RTL_PORTS]) {
    return (word(levels) & 0x01010101) * 0x01020408 >> 24;
}

// The other way round.
void set(uint8_t (&levels)[AXON_RTL_PORTS], uint32_t bits) {
    const uint32_t all = bits * 0x00204081 & 0x01010101;
    std::memcpy(levels, &all, sizeof all);
}

// Clocks of one clock_gate, bits from `shift` on in a set of clocks.
struct Gate {
    const uint8_t *active;
    unsigned shift;
};

// The clocks of a device. A set of them is in the order of the gates.
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
            // A receiver is active with its pins.
            bool is_receiver = false;
            for (int port = 0; port < AXON_PORTS; port++) {
                if (!ends_with(gate, "ports[" + std::to_string(port) + "].rx_gate")) continue;
                of_port[port] = uint64_t(1) << bits.size();
                is_receiver = true;
            }
            if (!is_receiver)
                gates.push_back({static_cast<uint8_t *>(active->datap()), unsigned(bits.size())});
            uint8_t &byte = *static_cast<uint8_t *>(driven->datap());
            for (int clock = 0; clock < 8; clock++) add(byte, 1 << clock);
        }
        for (int port = 0; port < AXON_PORTS; port++)
            if (of_port[port] == 0) throw std::logic_error("a port without a clock");
        run_all();
    }

    // Runs all clocks for HOLD_CYCLES.
    void run_all() { recent = ~uint64_t(0); }

    // Runs all clocks for ever.
    void never_stop() { always = ~uint64_t(0); }

    // Returns the clock of the receiver of a port.
    uint64_t of(int port) const { return of_port[port]; }

    // Runs one edge of the clocks of `wanted`, and of those that are active or have been.
    void run(uint64_t wanted) {
        for (const Gate &gate : gates) wanted |= uint64_t(*gate.active) << gate.shift;
        recent |= wanted;
        const uint64_t running = recent | held | always;
        if (--left == 0) {
            held = recent;
            recent = 0;
            left = HOLD_CYCLES;
        }
        if (running != last) select(running);
        for (const auto part : parts) part(&root);
    }

private:
    Vaxon_model___024root &root;
    std::vector<Gate> gates;
    std::vector<uint64_t> bits; // of each clock, its bit in Verilator's order
    uint64_t of_port[AXON_RTL_PORTS] = {};
    // Clocks that were active in this period of HOLD_CYCLES, and in the one before.
    uint64_t recent = 0, held = 0, left = HOLD_CYCLES;
    uint64_t always = 0;
    // Clocks of the last edge, and the parts of the model that they run.
    uint64_t last = 0;
    std::vector<void (*)(Vaxon_model___024root *)> parts;

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

    // Lists the parts that these clocks run.
    void select(uint64_t clocks) {
        last = clocks;
        uint64_t triggers = 0;
        for (size_t at = 0; at < bits.size(); at++)
            if (clocks >> at & 1) triggers |= bits[at];
        parts.clear();
        for (const Part *part = PARTS; part->run != nullptr; part++)
            if (part->clocks & triggers) parts.push_back(part->run);
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
        const uint32_t txd = top->txd;
        std::memcpy(outputs.txd, &txd, sizeof txd);
        set(outputs.tx_en, top->tx_en);
        set(outputs.tx_er, top->tx_er);
        outputs.reg_read_data = top->reg_read_data;
        outputs.punt_valid = top->punt_valid;
        outputs.punt_symbol = top->punt_symbol;
        outputs.inject_ready = top->inject_ready;
    }

    // Runs the edge with which these inputs are registered.
    void edge(const axon_rtl_inputs &inputs) {
        uint64_t wanted = 0;
        if (word(inputs.rx_dv) != 0 || top->rx_dv != 0) {
            top->rxd = word(inputs.rxd);
            top->rx_dv = mask(inputs.rx_dv) & PORTS_MASK;
            top->rx_er = mask(inputs.rx_er) & PORTS_MASK;
            for (int port = 0; port < AXON_RTL_PORTS; port++)
                wanted |= clocks->of(port) & -uint64_t(inputs.rx_dv[port]);
        }
        // An injected frame wakes its parts only; all else may change anything.
        if (std::memcmp(&inputs.link_up, &last.link_up, CONTROL_BYTES + INJECT_BYTES) != 0) {
            if (std::memcmp(&inputs.link_up, &last.link_up, CONTROL_BYTES) != 0)
                clocks->run_all();
            wanted |= Clocks::PINS;
            last = inputs;
            top->link_up = mask(inputs.link_up) & PORTS_MASK;
            top->reg_address = inputs.reg_address;
            top->reg_write = inputs.reg_write;
            top->reg_write_data = inputs.reg_write_data;
            top->reg_read = inputs.reg_read;
            top->punt_ready = inputs.punt_ready;
            top->inject_valid = inputs.inject_valid;
            top->inject_symbol = inputs.inject_symbol;
        }
        clocks->run(wanted);
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

// The scopes of a model leave the context of the thread, which is that of the last device that the
// thread has made; that one may be gone, or the thread may be another one.
void axon_rtl_free(axon_rtl_device *device) {
    if (device == nullptr) return;
    Verilated::threadContextp(&device->context);
    delete device;
    Verilated::threadContextp(Verilated::defaultContextp());
}

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
        if (outputs->punt_valid || word(outputs->tx_en)) break;
    }
    return done;
}
