#include "bench/simgrid_programs.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <deque>
#include <simgrid/kernel/routing/NetPoint.hpp>
#include <simgrid/s4u.hpp>
#include <string>

#include "support/network_cases.h"

namespace sg4 = simgrid::s4u;

namespace reckon::bench {
namespace {

char payload;  // SimGrid wants an address

std::uint64_t whole(Bytes b) { return std::uint64_t(std::floor(b.v)); }

}  // namespace

struct SimGridStar::Parts {
  // Times in seconds and sizes in bytes as SimGrid has them.
  std::vector<const char*> options{"network_bench", "--cfg=network/model:CM02",
                                   "--cfg=network/crosstraffic:0", "--cfg=contexts/stack-size:256",
                                   "--log=root.threshold:error"};
  int option_count = int(options.size());
  sg4::Engine engine{&option_count, const_cast<char**>(options.data())};
  std::vector<sg4::Host*> hosts;
  std::vector<sg4::Mailbox*> mailboxes;  // one a host

  Seconds run(double start) {
    engine.run();
    return Seconds{sg4::Engine::get_clock() - start};
  }
};

SimGridStar::SimGridStar(std::span<const BytesPerSecond> nics) : parts_(std::make_unique<Parts>()) {
  sg4::NetZone* zone = sg4::create_star_zone("star");
  for (std::size_t h = 0; h < nics.size(); ++h) {
    const std::string name = "host" + std::to_string(h);
    sg4::Host* host = zone->create_host(name, 1e9)->seal();
    auto* nic = zone->create_split_duplex_link(name + "_nic", nics[h].v)->set_latency(0);
    nic->seal();
    zone->add_route(host->get_netpoint(), nullptr, nullptr, nullptr,
                    {sg4::LinkInRoute(nic, sg4::LinkInRoute::Direction::UP)}, true);
    parts_->hosts.push_back(host);
    parts_->mailboxes.push_back(sg4::Mailbox::by_name(name));
  }
  zone->seal();
}

SimGridStar::~SimGridStar() = default;

Seconds SimGridStar::parameter_server(int workers, int servers, Bytes model, int steps) {
  Parts& p = *parts_;
  const std::uint64_t shard = whole(model / double(servers));
  const sg4::BarrierPtr pushed = sg4::Barrier::create(unsigned(servers));
  const auto exchange = [&p](int peers, int first, sg4::Mailbox* own, std::uint64_t size,
                             bool put_first, const sg4::BarrierPtr& between) {
    std::vector<void*> data(std::size_t(peers), nullptr);
    std::vector<sg4::CommPtr> comms;
    const auto put = [&] {
      for (int i = 0; i < peers; ++i)
        comms.push_back(p.mailboxes[std::size_t(first + i)]->put_async(&payload, size));
    };
    const auto get = [&] {
      for (void*& d : data) comms.push_back(own->get_async<void>(&d));
    };
    put_first ? put() : get();
    if (between) {
      sg4::Comm::wait_all(comms);
      comms.clear();
      between->wait();
    }
    put_first ? get() : put();
    sg4::Comm::wait_all(comms);
  };
  for (int h = 0; h < workers + servers; ++h) {
    const bool worker = h < workers;
    sg4::Actor::create(worker ? "worker" : "server", p.hosts[std::size_t(h)], [=, &p] {
      for (int step = 0; step < steps; ++step) {
        exchange(worker ? servers : workers, worker ? workers : 0, p.mailboxes[std::size_t(h)],
                 shard, worker, worker ? nullptr : pushed);
      }
    });
  }
  return p.run(sg4::Engine::get_clock());
}

Seconds SimGridStar::asynchronous_parameter_server(int workers, int servers, int steps, Bytes model,
                                                   Seconds compute) {
  Parts& p = *parts_;
  const std::uint64_t shard = whole(model / double(servers));
  struct Server {
    std::deque<int> wanted_by;
    sg4::SemaphorePtr wanted = sg4::Semaphore::create(0);
  };
  const auto server_count = std::size_t(servers);
  std::vector<Server> state(server_count);
  cases::Dice dice(1);
  for (int w = 0; w < workers; ++w) {
    std::vector<double> delays;
    for (int step = 0; step < steps; ++step)
      delays.push_back((compute * dice.between(0.9, 1.1)).count());
    const double stagger = compute.count() * w / workers;
    sg4::Actor::create("worker", p.hosts[std::size_t(w)], [=, &p, &state] {
      if (stagger > 0) sg4::this_actor::sleep_for(stagger);
      std::vector<void*> data(std::size_t(servers), nullptr);
      std::vector<sg4::CommPtr> comms;
      for (const double delay : delays) {
        sg4::this_actor::sleep_for(delay);
        for (int s = 0; s < servers; ++s)
          comms.push_back(p.mailboxes[std::size_t(workers + s)]->put_async(&payload, shard));
        sg4::Comm::wait_all(comms);
        comms.clear();
        for (int s = 0; s < servers; ++s) {
          comms.push_back(p.mailboxes[std::size_t(w)]->get_async<void>(&data[std::size_t(s)]));
          state[std::size_t(s)].wanted_by.push_back(w);
          state[std::size_t(s)].wanted->release();
        }
        sg4::Comm::wait_all(comms);
        comms.clear();
      }
    });
  }
  for (int s = 0; s < servers; ++s) {
    sg4::Host* host = p.hosts[std::size_t(workers + s)];
    sg4::Actor::create("receives", host, [=, &p] {
      std::vector<void*> data(std::size_t(workers * steps), nullptr);
      std::vector<sg4::CommPtr> comms;
      for (void*& d : data)
        comms.push_back(p.mailboxes[std::size_t(workers + s)]->get_async<void>(&d));
      sg4::Comm::wait_all(comms);
    });
    sg4::Actor::create("sends", host, [=, &p, &server = state[std::size_t(s)]] {
      for (int i = 0; i < workers * steps; ++i) {
        server.wanted->acquire();
        p.mailboxes[std::size_t(server.wanted_by.front())]->put_init(&payload, shard)->detach();
        server.wanted_by.pop_front();
      }
    });
  }
  return p.run(sg4::Engine::get_clock());
}

namespace {

/// A ring driven from SimGrid's completion callback.
struct CallbackRing {
  const std::vector<sg4::Host*>& hosts;
  std::uint64_t chunk;
  int rounds;
  std::vector<int> started{}, finished{};  // rounds, by rank
  std::vector<std::array<sg4::CommPtr, 2>>
      running{};  // by rank; nobody else holds a communication while it runs

  void start(std::size_t i) {
    const sg4::CommPtr comm = sg4::Comm::sendto_init(hosts[i], hosts[(i + 1) % hosts.size()]);
    comm->set_payload_size(chunk);
    running[i][std::size_t(started[i]++) % 2] = comm;
    comm->vetoable_start();
  }
  void try_start(std::size_t i) {
    const int round = started[i];
    if (round == rounds || finished[i] < round ||
        finished[(i + hosts.size() - 1) % hosts.size()] < round)
      return;
    start(i);
  }
  void on_finished(std::size_t i) {
    ++finished[i];
    try_start(i);
    try_start((i + 1) % hosts.size());
  }
};
CallbackRing* callback_ring = nullptr;  // SimGrid's signals are static and keep their callbacks

}  // namespace

Seconds SimGridStar::ring(Bytes model, int rounds) {
  Parts& p = *parts_;
  [[maybe_unused]] static const bool connected = [] {
    sg4::Activity::on_completion_cb([](const sg4::Activity& activity) {
      if (callback_ring == nullptr) return;
      const auto& comm = static_cast<const sg4::Comm&>(activity);
      callback_ring->on_finished(comm.get_source()->get_netpoint()->id());
    });
    return true;
  }();
  const double start = sg4::Engine::get_clock();
  const std::size_t n = p.hosts.size();
  CallbackRing ring{p.hosts, whole(model / double(n)), rounds};
  ring.started.assign(n, 0);
  ring.finished.assign(n, 0);
  ring.running.resize(n);
  callback_ring = &ring;
  for (std::size_t i = 0; i < n; ++i) ring.start(i);
  const Seconds simulated = p.run(start);
  callback_ring = nullptr;
  return simulated;
}

Seconds SimGridStar::ring_of_actors(Bytes model, int rounds) {
  Parts& p = *parts_;
  const std::size_t n = p.hosts.size();
  const std::uint64_t chunk = whole(model / double(n));
  for (std::size_t i = 0; i < n; ++i) {
    sg4::Actor::create("rank", p.hosts[i], [=, &p] {
      void* data = nullptr;
      std::vector<sg4::CommPtr> comms(2);
      for (int r = 0; r < rounds; ++r) {
        comms[0] = p.mailboxes[i]->get_async<void>(&data);
        comms[1] = p.mailboxes[(i + 1) % n]->put_async(&payload, chunk);
        sg4::Comm::wait_all(comms);
      }
    });
  }
  return p.run(sg4::Engine::get_clock());
}

Seconds SimGridStar::churn(int flows, Seconds window, std::uint64_t seed) {
  Parts& p = *parts_;
  const std::size_t n = p.hosts.size();
  struct Flow {
    double start;
    std::size_t to;
    std::uint64_t size;
    double cap;
  };
  std::vector<std::vector<Flow>> out(n);
  std::vector<int> in(n, 0);
  const cases::Case c = cases::churn(int(n), flows, window, seed);
  for (const Activity& a : c.graph.activities()) {
    const auto path = c.network.path(a.path);  // links come in pairs: out and in of each host
    const std::size_t from = index(path[0]) / 2, to = index(path[1]) / 2;
    out[from].push_back({a.delay.count(), to, whole(a.size), a.cap.v});
    ++in[to];
  }
  const double start = sg4::Engine::get_clock();
  for (std::size_t h = 0; h < n; ++h) {
    std::sort(out[h].begin(), out[h].end(),
              [](const Flow& a, const Flow& b) { return a.start < b.start; });
    sg4::Actor::create("sender", p.hosts[h], [&p, &mine = out[h], start] {
      for (const Flow& flow : mine) {
        sg4::this_actor::sleep_until(start + flow.start);
        const sg4::CommPtr comm = p.mailboxes[flow.to]->put_init(&payload, flow.size);
        if (flow.cap > 0) comm->set_rate(flow.cap);
        comm->detach();
      }
    });
    sg4::Actor::create("receiver", p.hosts[h], [&p, h, count = in[h]] {
      std::vector<void*> data(std::size_t(count), nullptr);
      std::vector<sg4::CommPtr> comms;
      for (void*& d : data) comms.push_back(p.mailboxes[h]->get_async<void>(&d));
      sg4::Comm::wait_all(comms);
    });
  }
  return p.run(start);
}

}  // namespace reckon::bench
