#include <arpa/inet.h>

#include "sim/base/unit_text.h"
#include "sim/scenario/yaml/fields.h"
#include "sim/scenario/yaml/model.h"

// `serving:`: requests to a trained model.
namespace reckon {
namespace {

constexpr double kMostRequests = 1e6;  // a second
constexpr double kMostReplicas = 10'000;
constexpr double kHoursOfDay = 24;
constexpr int kLargestBatch = 65'536;
constexpr double kShortestSync = 1;  // seconds

Form rate_form() { return Form{Form::Kind::number, 0, kMostRequests}; }

void read_rates(Reader& reader, const YamlNode& node, ServingSpec& serving) {
  std::vector<double> rates;
  if (node.kind == YamlNode::Kind::list) {
    reader.each(node, [&](const YamlNode& item) {
      if (const auto rate = reader.number(item, rate_form())) rates.push_back(*rate);
    });
    if (double(node.entries.size()) != kHoursOfDay)
      reader.error(fmt::format("{} has {} numbers, a day has 24 hours", reader.subject(),
                               node.entries.size()),
                   "one number, or 24: by the hour of the day in UTC, from 00:00");
  } else if (const auto rate = reader.number(node, rate_form())) {
    rates.push_back(*rate);
  }
  const bool some = std::ranges::any_of(rates, [](double rate) { return rate > 0; });
  if (!rates.empty() && !some)
    reader.error(fmt::format("{} is 0: nothing is served", reader.subject()));
  serving.requests_per_second = std::move(rates);
}

/// {1: 2.3ms, 8: 7.4ms}; sizes may be means of batches that were measured together ("6.5").
void read_times(Reader& reader, const YamlNode& node, ServingBatchSpec& batch) {
  std::map<double, Seconds> times;
  reader.each_entry(node, [&](const std::string& key, const YamlNode& value) {
    const auto size = parse_number(key);
    if (!size || *size < 1 || *size > kLargestBatch)
      reader.error(fmt::format("'{}' is no size of a batch", shortened(key)),
                   fmt::format("a number from 1 to {}: {{1: 2.3ms, 8: 7.4ms}}", kLargestBatch));
    else if (const auto time = reader.number(value, duration_above_zero()))
      times.emplace(*size, Seconds{*time});
  });
  batch.times = std::move(times);
}

const Fields<ServingBatchSpec>& batch_fields() {
  using B = ServingBatchSpec;
  Form by_size{.kind = Form::Kind::map, .item = Form::Kind::duration};
  static const Fields<B> table{
      number_field("max", &B::max, whole(1, kLargestBatch),
                   "Requests of one forward pass, at most.", "16"),
      number_field("wait", &B::wait, duration_from_zero(),
                   "How long the first request of a batch waits for others; default: 0s, so that a "
                   "batch is what waits when the replica gets free.",
                   "5ms"),
      field<B>("times", by_size, read_times,
               "Measured: time of a replica for a batch of this many requests, in between "
               "by straight lines; default: what the model's forward pass takes.",
               "{1: 2.3ms, 8: 7.4ms}"),
  };
  return table;
}

const Fields<ServingReplicasSpec>& replicas_fields() {
  using R = ServingReplicasSpec;
  static const Fields<R> table{
      number_field("initial", &R::initial, whole(1, kMostReplicas),
                   "At the start; default: what the first rate needs at the target.", "3"),
      required(number_field("min", &R::min, whole(1, kMostReplicas),
                            "The HorizontalPodAutoscaler keeps as many.", "2")),
      required(number_field("max", &R::max, whole(1, kMostReplicas), "And makes no more.", "10")),
      number_field("standby", &R::standby, whole(0, kMostReplicas),
                   "Started beside them and ready, without requests until more are needed; "
                   "default: 0.",
                   "1"),
      number_field("target_utilization", &R::target_utilization, fraction(true),
                   "Busy share of a replica that the HorizontalPodAutoscaler aims at; default: "
                   "80%.",
                   "60%"),
  };
  return table;
}

void read_replicas(Reader& reader, const YamlNode& node, ServingSpec& serving) {
  if (node.kind != YamlNode::Kind::map) {
    if (const auto n = reader.number(node, whole(1, kMostReplicas)))
      serving.replicas.min = serving.replicas.max = static_cast<int>(*n);
    return;
  }
  ServingReplicasSpec replicas;
  const std::size_t before = reader.errors();
  if (!read_fields(reader, node, replicas_fields(), replicas) || reader.errors() != before) return;
  if (replicas.min > replicas.max)
    reader.error(node.find("min")->value.at,
                 fmt::format("min {} is above max {}", replicas.min, replicas.max),
                 "example: replicas: {min: 2, max: 10}");
  else if (replicas.initial &&
           (*replicas.initial < replicas.min || *replicas.initial > replicas.max))
    reader.error(
        node.find("initial")->value.at,
        fmt::format("initial {} is outside {}..{}", *replicas.initial, replicas.min, replicas.max),
        "initial must lie between min and max");
  serving.replicas = replicas;
}

const Fields<ServingAutoscalerSpec>& autoscaler_fields() {
  using A = ServingAutoscalerSpec;
  static const Fields<A> table{
      number_field("sync_period", &A::sync_period,
                   Form{Form::Kind::duration, kShortestSync, kLongestTime},
                   "Between two looks at the load; default: 15s.", "15s"),
      number_field("tolerance", &A::tolerance, fraction(),
                   "Distance from the target at which nothing is done; default: 10%.", "10%"),
      number_field("downscale_stabilization", &A::downscale_stabilization, duration_from_zero(),
                   "Replicas are as many as the most that was asked for in it; default: 5min.",
                   "5min"),
  };
  return table;
}

const Fields<ServingOverheadSpec>& overhead_fields() {
  using O = ServingOverheadSpec;
  static const Fields<O> table{
      number_field("request", &O::request, duration_from_zero(),
                   "Of a replica for each request (HTTP, text to numbers); default: 0s.", "300us"),
      number_field("batch", &O::batch, duration_from_zero(),
                   "Of a replica for each forward pass; default: 0s.", "1ms"),
      number_field(
          "latency", &O::latency, duration_from_zero(),
          "Of a request outside the queue, which keeps no replica busy (reading it, writing "
          "the answer); default: 0s.",
          "800us"),
  };
  return table;
}

void read_goal(Reader& reader, const YamlNode& node, ServingSpec& serving) {
  const auto text = reader.text(node);
  if (!text) return;
  const auto goal = parse_expectation(*text);
  const bool bounds = goal && goal->metric == Metric::latency &&
                      (goal->comparison == Comparison::le || goal->comparison == Comparison::lt);
  if (bounds)
    serving.goal = *text;
  else
    reader.error(goal ? fmt::format("goal '{}' is no upper bound of a latency", shortened(*text))
                      : fmt::format("goal '{}': {}", shortened(*text), goal.error()),
                 "example: goal: p99(latency) <= 50ms");
}

/// "10.0.0.0/8", "2001:db8::/32".
bool is_network(const std::string& text) {
  const std::size_t slash = text.find('/');
  if (slash == std::string::npos) return false;
  const std::string address = text.substr(0, slash);
  const auto bits = parse_integer(text.substr(slash + 1));
  std::array<unsigned char, sizeof(in6_addr)> bytes{};
  if (inet_pton(AF_INET, address.c_str(), bytes.data()) == 1)
    return bits && *bits >= 0 && *bits <= 32;
  return inet_pton(AF_INET6, address.c_str(), bytes.data()) == 1 && bits && *bits >= 0 &&
         *bits <= 128;
}

void read_clients(Reader& reader, const YamlNode& node, ServingSpec& serving) {
  reader.each(node, [&](const YamlNode& item) {
    const auto text = reader.text(item);
    if (!text) return;
    if (is_network(*text))
      serving.clients.push_back(*text);
    else
      reader.error(fmt::format("'{}' is no network", shortened(*text)),
                   "clients: [10.20.0.0/16, 203.0.113.7/32]; 0.0.0.0/0 is everybody");
  });
}

}  // namespace

const Fields<ServingSpec>& serving_fields() {
  using S = ServingSpec;
  Form model = choice("a catalog name, or a map with one of huggingface, transformer, layers");
  model.item = Form::Kind::text;
  model.fields = &model_infos;
  Form rates = choice("a number, or a list of 24: by the hour of the day in UTC");
  rates.item = Form::Kind::number;
  rates.high = kMostRequests;
  rates.or_list = true;
  Form replicas = choice("a number, or a map");
  replicas.item = Form::Kind::whole;
  replicas.low = 1, replicas.high = kMostReplicas;
  replicas.fields = &infos_of<replicas_fields>;
  static const Fields<S> table{
      field<S>(
          "model", model, [](Reader& r, const YamlNode& n, S& s) { s.model = read_model(r, n); },
          "What is served; default: the workload's model.", "resnet50_v1_5"),
      number_field("sequence_length", &S::sequence_length, whole(1, 1e8),
                   "Tokens of one request; default: the model's own.", "512"),
      word_field("precision", &S::precision,
                 "What the multiplications run in; default: the workload's.", "fp16"),
      text_field(
          "stack", &S::stack,
          "Software stack whose measured efficiencies apply; default: any. measured: of none, "
          "overhead is all that a batch takes.",
          "xla"),
      name_field("pool", &S::pool, "Where; default: the pool with role inference.", "serving"),
      required(field<S>("requests_per_second", rates, read_rates,
                        "Requests of one sample each; 24 numbers: by the hour of the day in UTC.",
                        "200")),
      word_field("arrivals", &S::arrivals,
                 "poisson: independent of each other (default); regular: evenly spaced.",
                 "poisson"),
      block_field<batch_fields>("batch", &S::batch, {}, "Requests that run together.",
                                "{max: 16, wait: 5ms}"),
      field<S>("replicas", replicas, read_replicas,
               "How many; default: 1. A replica has one accelerator, or a node without any.",
               "{min: 2, max: 10}"),
      block_field<autoscaler_fields>("autoscaler", &S::autoscaler, {},
                                     "Rules of the HorizontalPodAutoscaler.",
                                     "{downscale_stabilization: 5min}"),
      word_field("routing", &S::routing,
                 "Who gets a request; default: random, as a Kubernetes Service does.",
                 "least_requests"),
      number_field("queue_limit", &S::queue_limit, whole(1, 1e6),
                   "Requests that may wait at a replica, others are refused; default: 1000.",
                   "1000"),
      number_field("start_up", &S::start_up, duration_from_zero(),
                   "Of a replica on a node that is there, the image included; default: framework "
                   "start of the catalog, and its image pull before it, once a node.",
                   "40s"),
      block_field<overhead_fields>("overhead", &S::overhead, {},
                                   "What a replica does beside forward passes, measured.",
                                   "{request: 300us, batch: 1ms}"),
      number_field("period", &S::period, duration_above_zero(),
                   "That is simulated; default: 1h, a day where the rate changes by the hour.",
                   "24h"),
      field<S>("goal", Form{Form::Kind::text}, read_goal,
               "What `reckon plan` holds at the lowest cost.", "p99(latency) <= 50ms"),
      field<S>("clients", Form{.kind = Form::Kind::list, .item = Form::Kind::text}, read_clients,
               "Networks that reach the exported service from outside the cluster; default: none, "
               "only the cluster's pods do.",
               "[10.20.0.0/16]"),
  };
  return table;
}

void check_serving(Reader& reader, const YamlNode& node, const ServingSpec& serving) {
  if (serving.batch.max == 1 && serving.batch.wait.count() > 0 && node.has("batch"))
    reader.error(node.find("batch")->key_at, "a batch of one request has nothing to wait for",
                 "example: batch: {max: 16, wait: 5ms}");
}

}  // namespace reckon
