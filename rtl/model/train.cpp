// Runs a device for a while, so that the compiler sees which of its code runs often: frames of 1,514
// bytes from each port alone, from all ports, and short ones, each followed by nothing. The last port
// is a host port: packets to it lose their header, and what comes from it goes to the CPU.
//
//     train <library>

#include <dlfcn.h>

#include <cstdio>
#include <vector>

#include "device.h"

namespace {

constexpr int PORTS = AXON_PORTS, CYCLES = 20'000, GAP = 12;
// Registers of a port; registers.toml.
constexpr int BLOCK = 0x1000, KIND = 0, FRAME_BYTES_MAX = 3, BYTES_MAX = 4, ROUTE_BYTES_MAX = 5;
constexpr uint32_t KIND_HOST = 1, KIND_AXON = 2;

template <typename F>
F function(void *library, const char *name) {
    return reinterpret_cast<F>(dlsym(library, name));
}

// Returns a packet to another port, with one forward hop, as it is on the wire.
std::vector<uint8_t> packet(int to, size_t bytes) {
    std::vector<uint8_t> frame = {0x10, 0, 0, 1, 0, 0x10};
    const size_t hop = AXON_HOP_BITS == 4 ? 5 : AXON_HOP_BITS == 8 ? 6 : 7;
    const size_t length = AXON_HOP_BITS == 4 ? 7 : AXON_HOP_BITS == 8 ? 8 : 10;
    frame.resize(bytes, 0x5a);
    frame[2] = uint8_t(length << 4);
    if (AXON_HOP_BITS == 16) frame[6] = 0;
    frame[hop] = uint8_t(AXON_HOP_BITS == 4 ? frame[hop] | to : to);
    uint32_t fcs = ~uint32_t(0);
    for (uint8_t byte : frame) {
        fcs ^= byte;
        for (int bit = 0; bit < 8; bit++) fcs = fcs >> 1 ^ (fcs & 1 ? 0xedb88320 : 0);
    }
    for (int byte = 0; byte < 4; byte++) frame.push_back(uint8_t(~fcs >> (8 * byte)));
    frame.insert(frame.begin(), {0x55, 0x55, 0x55, 0x55, 0x55, 0x55, 0x55, 0xd5});
    return frame;
}

}  // namespace

int main(int, char **words) {
    void *library = dlopen(words[1], RTLD_NOW);
    if (library == nullptr) return std::puts(dlerror()), 1;
    const auto step = function<decltype(&axon_rtl_step)>(library, "axon_rtl_step");
    axon_rtl_device *device = function<decltype(&axon_rtl_new)>(library, "axon_rtl_new")();
    axon_rtl_inputs inputs = {};
    axon_rtl_outputs outputs;
    long sent = 0;
    const auto run = [&](int cycles) {
        for (int cycle = 0; cycle < cycles; cycle++) {
            step(device, &inputs, &outputs);
            for (int port = 0; port < PORTS; port++) sent += outputs.tx_en[port];
        }
    };
    inputs.punt_ready = 1;
    for (int port = 0; port < PORTS; port++) inputs.link_up[port] = 1;
    for (int port = 0; port < PORTS; port++) {
        const uint32_t settings[][2] = {
            {KIND, port == PORTS - 1 ? KIND_HOST : KIND_AXON},
            {FRAME_BYTES_MAX, 1514}, {BYTES_MAX, 1800}, {ROUTE_BYTES_MAX, 200},
        };
        for (const auto &[offset, value] : settings) {
            inputs.reg_write = 1;
            inputs.reg_address = uint16_t(BLOCK * (port + 1) + offset);
            inputs.reg_write_data = value;
            run(1);
            inputs.reg_write = 0;
            run(1);
        }
    }
    std::vector<uint8_t> wires[PORTS];
    size_t at[PORTS];
    const auto load = [&](int first, int end, size_t bytes) {
        for (int port = first; port < end; port++) {
            wires[port] = packet((port + 1) % PORTS, bytes);
            at[port] = 0;
        }
        for (int cycle = 0; cycle < CYCLES; cycle++) {
            for (int port = first; port < end; port++) {
                inputs.rx_dv[port] = at[port] < wires[port].size();
                inputs.rxd[port] = inputs.rx_dv[port] ? wires[port][at[port]] : 0;
                if (++at[port] == wires[port].size() + GAP) at[port] = 0;
            }
            run(1);
        }
        for (int port = first; port < end; port++) inputs.rx_dv[port] = 0;
        run(CYCLES / 10);
    };
    for (int port = 0; port < PORTS; port++) load(port, port + 1, 1514);
    load(0, PORTS, 1514);
    load(0, PORTS, 60);
    function<decltype(&axon_rtl_free)>(library, "axon_rtl_free")(device);
    std::printf("%ld bytes sent\n", sent);
    return sent > CYCLES ? 0 : 1;
}
