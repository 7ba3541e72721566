#include "sim/referee/simgrid_network.h"

#include <cmath>
#include <deque>
#include <simgrid/s4u.hpp>
#include <string>

#include "sim/base/check.h"

namespace sg4 = simgrid::s4u;

namespace reckon {
namespace {

/// Hosts and routes: each path is a zone of its own with two hosts, one at each end, and a route
/// over the path's links between them. One flat zone would need a routing table of (2 paths)^2.
struct Platform {
  struct Ends {
    sg4::Host *from, *to;
  };
  std::vector<Ends> paths;
  sg4::Host* idle;  // where activities without a transfer sleep
};

Platform build_platform(const Network& network) {
  Platform platform;
  sg4::NetZone* root = sg4::create_empty_zone("network");
  std::vector<const sg4::Link*> links;
  for (const BytesPerSecond capacity : network.links()) {
    links.push_back(root->create_link("link" + std::to_string(links.size()), capacity.v)
                        ->set_latency(0)
                        ->seal());
  }
  platform.idle = root->create_host("idle", 1e9)->seal();
  for (std::size_t p = 0; p < network.path_count(); ++p) {
    const std::string name = "path" + std::to_string(p);
    sg4::NetZone* zone = sg4::create_full_zone(name)->set_parent(root);
    sg4::Host* from = zone->create_host(name + "_from", 1e9)->seal();
    sg4::Host* to = zone->create_host(name + "_to", 1e9)->seal();
    std::vector<sg4::LinkInRoute> route;
    for (const LinkId l : network.path(PathId(p))) route.emplace_back(links[index(l)]);
    zone->add_route(from->get_netpoint(), to->get_netpoint(), nullptr, nullptr, route, false);
    zone->seal();
    platform.paths.push_back({from, to});
  }
  root->seal();  // by hand: Engine seals its platform only once a process
  return platform;
}

/// One graph's life. All members are touched by actors only, which SimGrid runs one at a time.
class Replay {
 public:
  Replay(const Platform& platform, const ActivityGraph& graph);
  std::vector<Seconds> run(sg4::Engine& engine);

 private:
  /// Takes activities through delay and transfer, one after the other; as many as there are
  /// concurrent activities.
  struct Runner {
    std::uint32_t activity = 0;
    sg4::SemaphorePtr start = sg4::Semaphore::create(0);
    sg4::Mailbox* mailbox = nullptr;
  };
  /// Posts the sending side of the transfers of one path, on the path's first host.
  struct Sender {
    std::deque<const Runner*> requests;
    sg4::SemaphorePtr posted = sg4::Semaphore::create(0);
  };
  struct Place {  // a path, or nowhere
    std::vector<Runner*> idle;
    Sender* sender = nullptr;
  };

  std::size_t place_of(const Activity& a) const {
    return a.size.v < 1 ? places_.size() - 1 : index(a.path);
  }
  void launch(std::uint32_t a);
  void launch_ready();
  void finish(std::uint32_t a);
  void run_activities(Runner& self, std::size_t place);
  void transfer(const Runner& self, const Activity& activity, Place& place);
  void send(Sender& self);

  const Platform& platform_;
  std::span<const Activity> activities_;
  std::vector<std::vector<std::uint32_t>> successors_;
  std::vector<std::size_t> waiting_for_;
  std::deque<std::uint32_t> ready_;  // to be launched
  bool launching_ = false;
  std::size_t unfinished_;
  std::vector<Seconds> finish_;
  double start_ = 0;
  sg4::SemaphorePtr done_ = sg4::Semaphore::create(0);
  std::vector<Place> places_;
  std::deque<Runner> runners_;  // a deque: actors hold references
  std::deque<Sender> senders_;
};

Replay::Replay(const Platform& platform, const ActivityGraph& graph)
    : platform_(platform),
      activities_(graph.activities()),
      successors_(activities_.size()),
      waiting_for_(activities_.size()),
      unfinished_(activities_.size()),
      finish_(activities_.size()),
      places_(platform.paths.size() + 1) {
  for (std::uint32_t a = 0; a < activities_.size(); ++a) {
    const auto before = graph.waits_for(ActivityId{a});
    waiting_for_[a] = before.size();
    for (const ActivityId b : before) successors_[index(b)].push_back(a);
  }
}

std::vector<Seconds> Replay::run(sg4::Engine& engine) {
  start_ = sg4::Engine::get_clock();
  sg4::Actor::create("main", platform_.idle, [this] {
    for (std::uint32_t a = 0; a < activities_.size(); ++a) {
      if (waiting_for_[a] == 0) ready_.push_back(a);
    }
    launch_ready();
    if (!activities_.empty()) done_->acquire();
  });
  engine.run();
  RECKON_CHECK(unfinished_ == 0);
  return std::move(finish_);
}

void Replay::launch(std::uint32_t a) {
  const Activity& activity = activities_[a];
  const std::size_t p = place_of(activity);
  if (activity.size.v < 1 && activity.delay.count() <= 0) return finish(a);
  Place& place = places_[p];
  if (place.idle.empty()) {
    Runner& runner = runners_.emplace_back();
    runner.activity = a;
    runner.mailbox = sg4::Mailbox::by_name("runner" + std::to_string(runners_.size()));
    sg4::Host* host = p < platform_.paths.size() ? platform_.paths[p].to : platform_.idle;
    sg4::Actor::create("runner", host, [this, &runner, p] {
      run_activities(runner, p);
    })->daemonize();
    return;
  }
  Runner& runner = *place.idle.back();
  place.idle.pop_back();
  runner.activity = a;
  runner.start->release();
}

/// Records `a` and launches what waited for it alone. A launch may finish the activity at once:
/// hence a queue, not a recursion on an actor's small stack. Another actor may come by while this
/// one launches; it leaves its share here.
void Replay::finish(std::uint32_t a) {
  finish_[a] = Seconds{sg4::Engine::get_clock() - start_};
  if (--unfinished_ == 0) done_->release();
  for (const std::uint32_t s : successors_[a]) {
    if (--waiting_for_[s] == 0) ready_.push_back(s);
  }
  launch_ready();
}

void Replay::launch_ready() {
  if (launching_) return;
  launching_ = true;
  while (!ready_.empty()) {
    const std::uint32_t a = ready_.front();
    ready_.pop_front();
    launch(a);
  }
  launching_ = false;
}

void Replay::run_activities(Runner& self, std::size_t p) {
  for (;;) {
    const std::uint32_t a = self.activity;
    const Activity& activity = activities_[a];
    if (activity.delay.count() > 0) sg4::this_actor::sleep_for(activity.delay.count());
    if (activity.size.v >= 1) transfer(self, activity, places_[p]);
    places_[p].idle.push_back(&self);
    finish(a);
    self.start->acquire();
  }
}

void Replay::transfer(const Runner& self, const Activity& activity, Place& place) {
  if (place.sender == nullptr) {
    place.sender = &senders_.emplace_back();
    sg4::Host* host = platform_.paths[index(activity.path)].from;
    sg4::Actor::create("sender", host, [this, sender = place.sender] {
      send(*sender);
    })->daemonize();
  }
  place.sender->requests.push_back(&self);
  place.sender->posted->release();
  std::vector<void*> received(activity.multiplicity);
  std::vector<sg4::CommPtr> flows;
  for (void*& data : received) flows.push_back(self.mailbox->get_async<void>(&data));
  for (const sg4::CommPtr& flow : flows) flow->wait();
}

void Replay::send(Sender& self) {
  static char payload;  // SimGrid wants an address
  for (;;) {
    self.posted->acquire();
    const Runner& runner = *self.requests.front();
    self.requests.pop_front();
    const Activity& activity = activities_[runner.activity];
    const auto size = static_cast<std::uint64_t>(std::floor(activity.size.v));
    for (std::uint32_t m = 0; m < activity.multiplicity; ++m) {
      const sg4::CommPtr flow = runner.mailbox->put_init(&payload, size);
      if (activity.cap.v > 0) flow->set_rate(activity.cap.v);
      flow->detach();
    }
  }
}

}  // namespace

std::vector<const char*> simgrid_options() {
  return {"reckon-referee",
          "--cfg=network/model:CM02",
          "--cfg=network/crosstraffic:0",
          "--cfg=surf/precision:1e-14",
          "--cfg=maxmin/precision:1e-14",
          "--cfg=contexts/stack-size:64",
          "--cfg=contexts/guard-size:0",
          "--log=root.threshold:error"};
}

std::vector<Seconds> SimGridNetwork::run(const Network& network, const ActivityGraph& graph) const {
  std::vector<const char*> options = simgrid_options();
  int count = int(options.size());
  sg4::Engine engine(&count, const_cast<char**>(options.data()));
  const Platform platform = build_platform(network);
  return Replay(platform, graph).run(engine);
}

}  // namespace reckon
