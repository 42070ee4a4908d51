// The workload of crates/sim/benches/fabric.rs in ns-3: a fat tree of k-port nodes with
// 10 Gb/s links of 1 us, in which host i sends 1472 bytes of UDP payload every 4 us to host
// i + N/2, in another pod, for a stretch of simulated time.
//
//     fat_tree <k> <global|nix> <simulated microseconds>
//     fat_tree <k> <global|nix> tcp <connections> <bytes> <TcpLinuxReno|TcpCubic>
//
// The second is --tcp of that program: connections of so many bytes, all opened at once, from each
// host to as many others, until all has arrived. Buffers of 128 KiB, segments of 1460 bytes, ten in
// the first window. Prints hosts, connections, simulated milliseconds, packet-hops, wall
// milliseconds, processor milliseconds, bytes received, peak memory in KiB.
//
// Prints one line: hosts, routing, packet-hops, wall nanoseconds of the stretch, processor
// nanoseconds of the stretch, packets delivered, peak memory in KiB. A packet-hop is a packet that a device has received. What
// comes before (topology, addresses, global routing's tables, the first packet of each flow,
// which makes nix-vector routing compute its path) is not in the time.
//
// As in the other program: hosts start one after another, evenly within one interval; queues
// hold 128 KiB, here as drop-tail queues of 85 packets, without a traffic control layer.

#include "ns3/applications-module.h"
#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/network-module.h"
#include "ns3/nix-vector-routing-module.h"
#include "ns3/point-to-point-module.h"
#include "ns3/traffic-control-module.h"

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fstream>
#include <string>
#include <vector>

using namespace ns3;

namespace
{

constexpr uint16_t PORT = 9;
constexpr uint32_t PAYLOAD_BYTES = 1472;
int64_t g_interval_ns = 4000;
constexpr int64_t WARM_UP_NS = 200000;

uint64_t g_hops = 0;

void
CountHop(Ptr<const Packet>)
{
    ++g_hops;
}

/// Peak resident memory in KiB, as the kernel counts it.
long
PeakKib()
{
    std::ifstream status("/proc/self/status");
    std::string line;
    while (std::getline(status, line))
    {
        if (line.rfind("VmHWM:", 0) == 0)
        {
            return std::atol(line.c_str() + 6);
        }
    }
    return 0;
}

/// Sends a packet at an interval: the least that an ns-3 source can do.
class Source : public Application
{
  public:
    void Setup(Ipv4Address target)
    {
        m_target = target;
    }

  private:
    void StartApplication() override
    {
        m_socket = Socket::CreateSocket(GetNode(), UdpSocketFactory::GetTypeId());
        m_socket->Bind();
        m_socket->Connect(InetSocketAddress(m_target, PORT));
        Send();
    }

    void StopApplication() override
    {
        m_socket->Close();
    }

    void Send()
    {
        m_socket->Send(Create<Packet>(PAYLOAD_BYTES));
        Simulator::Schedule(NanoSeconds(g_interval_ns), &Source::Send, this);
    }

    Ptr<Socket> m_socket;
    Ipv4Address m_target;
};

struct Tree
{
    NodeContainer hosts;
    std::vector<Ipv4Address> addresses;
};

/// The fat tree of the fabric file: all edge nodes, pod by pod, all aggregation nodes, the
/// core, with k/2 hosts at each edge node.
Tree
Build(uint32_t k, bool nix)
{
    const uint32_t half = k / 2;
    NodeContainer edge;
    NodeContainer aggregation;
    NodeContainer core;
    Tree tree;
    edge.Create(k * half);
    aggregation.Create(k * half);
    core.Create(half * half);
    tree.hosts.Create(k * half * half);

    InternetStackHelper stack;
    if (nix)
    {
        Ipv4NixVectorHelper routing;
        stack.SetRoutingHelper(routing);
    }
    else
    {
        // Equal paths are chosen among at random per packet by default; one per
        // flow keeps the order, as on the other side.
        Config::SetDefault("ns3::Ipv4GlobalRouting::RandomEcmpRouting", BooleanValue(false));
    }
    stack.SetIpv6StackInstall(false);
    stack.InstallAll();

    PointToPointHelper wire;
    wire.SetDeviceAttribute("DataRate", StringValue("10Gbps"));
    wire.SetChannelAttribute("Delay", StringValue("1us"));
    wire.SetQueue("ns3::DropTailQueue<Packet>", "MaxSize", StringValue("85p"));
    Ipv4AddressHelper addresses("10.0.0.0", "255.255.255.252");
    auto link = [&](Ptr<Node> a, Ptr<Node> b) {
        NetDeviceContainer devices = wire.Install(a, b);
        Ipv4InterfaceContainer interfaces = addresses.Assign(devices);
        addresses.NewNetwork();
        for (uint32_t side = 0; side < 2; ++side)
        {
            devices.Get(side)->TraceConnectWithoutContext("MacRx", MakeCallback(&CountHop));
        }
        return interfaces.GetAddress(1);
    };
    for (uint32_t host = 0; host < tree.hosts.GetN(); ++host)
    {
        tree.addresses.push_back(link(edge.Get(host / half), tree.hosts.Get(host)));
    }
    for (uint32_t pod = 0; pod < k; ++pod)
    {
        for (uint32_t e = 0; e < half; ++e)
        {
            for (uint32_t a = 0; a < half; ++a)
            {
                link(edge.Get(pod * half + e), aggregation.Get(pod * half + a));
            }
        }
        for (uint32_t a = 0; a < half; ++a)
        {
            for (uint32_t c = 0; c < half; ++c)
            {
                link(aggregation.Get(pod * half + a), core.Get(a * half + c));
            }
        }
    }
    // Devices get a traffic control layer with their address; the wire's queue is enough.
    TrafficControlHelper::Default().Uninstall([] {
        NetDeviceContainer all;
        for (auto node = NodeList::Begin(); node != NodeList::End(); ++node)
        {
            for (uint32_t device = 0; device < (*node)->GetNDevices(); ++device)
            {
                if ((*node)->GetDevice(device)->GetObject<PointToPointNetDevice>())
                {
                    all.Add((*node)->GetDevice(device));
                }
            }
        }
        return all;
    }());
    if (!nix)
    {
        Ipv4GlobalRoutingHelper::PopulateRoutingTables();
    }
    return tree;
}

int
RunTcp(Tree& tree, uint32_t connections, uint64_t bytes)
{
    const uint32_t hosts = tree.hosts.GetN();
    std::vector<Ptr<PacketSink>> sinks;
    PacketSinkHelper sink("ns3::TcpSocketFactory", InetSocketAddress(Ipv4Address::GetAny(), PORT));
    for (uint32_t host = 0; host < hosts; ++host)
    {
        sinks.push_back(sink.Install(tree.hosts.Get(host)).Get(0)->GetObject<PacketSink>());
    }
    for (uint32_t number = 0; number < connections; ++number)
    {
        const uint32_t host = number % hosts;
        const uint32_t away = 1 + (hosts / 2 - 1 + number / hosts) % (hosts - 1);
        const InetSocketAddress target(tree.addresses[(host + away) % hosts], PORT);
        BulkSendHelper source("ns3::TcpSocketFactory", target);
        source.SetAttribute("MaxBytes", UintegerValue(bytes));
        source.Install(tree.hosts.Get(host));
    }
    auto received = [&] {
        uint64_t sum = 0;
        for (const auto& each : sinks)
        {
            sum += each->GetTotalRx();
        }
        return sum;
    };
    const std::clock_t cpu_begin = std::clock();
    const auto begin = std::chrono::steady_clock::now();
    while (received() < connections * bytes && Simulator::Now() < Seconds(600))
    {
        Simulator::Stop(MilliSeconds(1));
        Simulator::Run();
    }
    const auto wall = std::chrono::steady_clock::now() - begin;
    const long long cpu = (std::clock() - cpu_begin) * 1000LL / CLOCKS_PER_SEC;
    const long long millis = std::chrono::duration_cast<std::chrono::milliseconds>(wall).count();
    std::printf("%u %u %lld %llu %lld %lld %llu %ld\n",
                hosts,
                connections,
                static_cast<long long>(Simulator::Now().GetMilliSeconds()),
                static_cast<unsigned long long>(g_hops),
                millis,
                cpu,
                static_cast<unsigned long long>(received()),
                PeakKib());
    std::fflush(stdout);
    std::_Exit(0);
}

} // namespace

int
main(int argc, char** argv)
{
    const bool tcp = argc == 7 && std::strcmp(argv[3], "tcp") == 0;
    const bool nix = argc >= 4 && std::strcmp(argv[2], "nix") == 0;
    if (argc < 4 || (argc > 5 && !tcp) || (!nix && std::strcmp(argv[2], "global") != 0))
    {
        const char* usage = "usage: %s <k> <global|nix> <simulated microseconds> [interval ns]\n"
                            "or: ... <k> <global|nix> tcp <connections> <bytes> <TcpLinuxReno>\n";
        std::fprintf(stderr, usage, argv[0]);
        return 2;
    }
    if (argc == 5)
    {
        g_interval_ns = std::atol(argv[4]);
    }
    if (tcp)
    {
        const std::string type = std::string("ns3::") + argv[6];
        Config::SetDefault("ns3::TcpL4Protocol::SocketType", StringValue(type));
        Config::SetDefault("ns3::TcpSocket::SegmentSize", UintegerValue(1460));
        Config::SetDefault("ns3::TcpSocket::InitialCwnd", UintegerValue(10));
        Config::SetDefault("ns3::TcpSocket::SndBufSize", UintegerValue(1 << 17));
        Config::SetDefault("ns3::TcpSocket::RcvBufSize", UintegerValue(1 << 17));
        Config::SetDefault("ns3::TcpSocketBase::MinRto", TimeValue(MilliSeconds(200)));
        Tree tree = Build(std::atoi(argv[1]), nix);
        return RunTcp(tree, std::atoi(argv[4]), std::atoll(argv[5]));
    }
    Tree tree = Build(std::atoi(argv[1]), nix);
    const uint32_t hosts = tree.hosts.GetN();
    std::vector<Ptr<PacketSink>> sinks;
    PacketSinkHelper sink("ns3::UdpSocketFactory", InetSocketAddress(Ipv4Address::GetAny(), PORT));
    for (uint32_t host = 0; host < hosts; ++host)
    {
        sinks.push_back(sink.Install(tree.hosts.Get(host)).Get(0)->GetObject<PacketSink>());
        Ptr<Source> source = CreateObject<Source>();
        source->Setup(tree.addresses[(host + hosts / 2) % hosts]);
        tree.hosts.Get(host)->AddApplication(source);
        source->SetStartTime(NanoSeconds(g_interval_ns * host / hosts));
    }
    auto received = [&] {
        uint64_t bytes = 0;
        for (const auto& each : sinks)
        {
            bytes += each->GetTotalRx();
        }
        return bytes / PAYLOAD_BYTES;
    };
    Simulator::Stop(NanoSeconds(WARM_UP_NS));
    Simulator::Run();
    const uint64_t hops = g_hops;
    const uint64_t packets = received();
    Simulator::Stop(MicroSeconds(std::atoi(argv[3])));
    const std::clock_t cpu_begin = std::clock();
    const auto begin = std::chrono::steady_clock::now();
    Simulator::Run();
    const auto wall = std::chrono::steady_clock::now() - begin;
    const long long cpu = (std::clock() - cpu_begin) * (1000000000LL / CLOCKS_PER_SEC);
    const long long nanos = std::chrono::duration_cast<std::chrono::nanoseconds>(wall).count();
    std::printf("%u %s %llu %lld %lld %llu %ld\n",
                hosts,
                argv[2],
                static_cast<unsigned long long>(g_hops - hops),
                nanos,
                cpu,
                static_cast<unsigned long long>(received() - packets),
                PeakKib());
    // No Simulator::Destroy: its time and memory are nobody's concern here.
    std::fflush(stdout);
    std::_Exit(0);
}
