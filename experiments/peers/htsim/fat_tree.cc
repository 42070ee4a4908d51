// The workload of crates/sim/benches/fabric.rs in htsim: the fat tree of its own topology with
// 10 Gb/s links of 1 us, in which host i is a constant-rate source to host i + N/2.
//
//     fat_tree <k> <simulated microseconds> <nanoseconds from one packet to the next>
//
// Prints one line: hosts, packet-hops, wall nanoseconds, processor nanoseconds, packets delivered,
// peak memory in KiB. A packet takes six hops; they are counted where it is delivered. What comes
// before a warm-up of 200 us is over is not in the time. Packets are 1500 bytes without content,
// queues hold 128 KiB, hosts start one after another, evenly within one interval.
//
// Built by tools/bench-sim against a checkout that the user names; nothing of htsim is here.

#include "config.h"

#include "cbr.h"
#include "eventlist.h"
#include "fat_tree_topology.h"
#include "firstfit.h"
#include "network.h"
#include "queue.h"

#include <sys/resource.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <vector>

// What htsim's library expects of its main program.
uint32_t RTT = 1;
uint32_t DEFAULT_NODES = 16;
FirstFit* ff = nullptr;
size_t subflow_count = 1;
EventList eventlist;

void
tokenize(string const& text, const char delimiter, vector<string>& out)
{
    std::stringstream stream(text);
    for (string word; std::getline(stream, word, delimiter);) {
        out.push_back(word);
    }
}

namespace
{

const int WARM_UP_US = 200;
const int LINK_MBPS = 10000;
const int QUEUE_BYTES = 128 * 1024;
const int PACKET_BITS = 1500 * 8;
const int HOPS = 6;

uint64_t
delivered(const std::vector<CbrSink*>& sinks)
{
    uint64_t packets = 0;
    for (const CbrSink* sink : sinks) {
        packets += sink->_received;
    }
    return packets;
}

long long
processor_ns()
{
    timespec now{};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return now.tv_sec * 1000000000LL + now.tv_nsec;
}

} // namespace

int
main(int argc, char** argv)
{
    if (argc != 4) {
        std::fprintf(stderr, "usage: %s <k> <microseconds> <interval in ns>\n", argv[0]);
        return 2;
    }
    const int k = std::atoi(argv[1]);
    const int micros = std::atoi(argv[2]);
    const int interval_ns = std::atoi(argv[3]);
    const int hosts = k * k * k / 4;

    eventlist.setEndtime(timeFromUs(static_cast<uint32_t>(micros + WARM_UP_US)));
    FatTreeTopology::set_tiers(3);
    FatTreeTopology tree(hosts, speedFromMbps(static_cast<uint64_t>(LINK_MBPS)), QUEUE_BYTES,
                         nullptr, &eventlist, nullptr, RANDOM, timeFromUs(1u), 0, FAIR_PRIO);
    const auto rate = speedFromMbps(static_cast<uint64_t>(PACKET_BITS) * 1000 / interval_ns);
    std::vector<CbrSink*> sinks;
    for (int from = 0; from < hosts; from++) {
        const int to = (from + hosts / 2) % hosts;
        std::vector<const Route*>* paths = tree.get_bidir_paths(from, to, false);
        // By the host's place below its edge switch, and by that of the edge switch in its pod: so
        // no two flows share a link.
        const int place = from % (k / 2);
        const int edge = from / (k / 2) % (k / 2);
        const Route* path = paths->at(static_cast<size_t>(place * (k / 2) + edge) % paths->size());
        // The host's own queue is one that does not order by priority.
        auto* route = new Route();
        route->push_back(new Queue(speedFromMbps(static_cast<uint64_t>(LINK_MBPS)), QUEUE_BYTES,
                                   eventlist, nullptr));
        for (size_t hop = 1; hop < path->size(); hop++) {
            route->push_back(path->at(hop));
        }
        auto* sink = new CbrSink();
        route->push_back(sink);
        sinks.push_back(sink);
        auto* source = new CbrSrc(eventlist, rate);
        const double offset_ps = 1000.0 * interval_ns * from / hosts;
        source->connect(*route, *sink, static_cast<simtime_picosec>(offset_ps));
    }

    while (eventlist.now() < timeFromUs(static_cast<uint32_t>(WARM_UP_US)) &&
           eventlist.doNextEvent()) {
    }
    const uint64_t before = delivered(sinks);
    const long long processor = processor_ns();
    const auto begin = std::chrono::steady_clock::now();
    while (eventlist.doNextEvent()) {
    }
    const auto wall = std::chrono::steady_clock::now() - begin;
    const long long wall_ns = std::chrono::duration_cast<std::chrono::nanoseconds>(wall).count();
    const uint64_t packets = delivered(sinks) - before;
    rusage used{};
    getrusage(RUSAGE_SELF, &used);
    std::printf("%d %llu %lld %lld %llu %ld\n", hosts,
                static_cast<unsigned long long>(packets * HOPS), wall_ns,
                processor_ns() - processor, static_cast<unsigned long long>(packets),
                used.ru_maxrss);
    return 0;
}
