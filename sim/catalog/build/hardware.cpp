#include <numeric>

#include "sim/catalog/build/build.h"
#include "sim/catalog/files/entry.h"

namespace reckon::catalog_text {
namespace {

template <class Rows>
std::vector<std::string> names_of(const Rows& rows) {
  std::vector<std::string> result;
  for (const auto& row : rows) result.push_back(row.name);
  return result;
}

constexpr double kGib = 1073741824.0, kGigabit = 1e9 / 8;

void check_alias(Reader& reader, const Catalog& catalog, const Accelerator& made) {
  std::vector<std::string> names = made.aliases;
  names.push_back(made.name);
  for (const std::string& name : names) {
    const Accelerator* other = catalog.find_accelerator(name);
    if (other) {
      reader.complain("aliases",
                      fmt::format("'{}' already names accelerator '{}'", name, other->name));
    }
  }
}

std::vector<int> torus_axes(Reader& reader, std::string_view text) {
  constexpr std::size_t kMostAxes = 6;  // of at most 1024: their product is an int64
  std::vector<int> axes;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('x'), text.size());
    const Parsed<std::int64_t> axis = parse_integer(text.substr(0, end));
    if (!axis || *axis < 1 || *axis > 1024 || axes.size() == kMostAxes) {
      reader.complain("torus", "torus is not a shape",
                      "chips along each axis, such as 8x16 or 4x4x4");
      return {};
    }
    axes.push_back(static_cast<int>(*axis));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return axes;
}

}  // namespace

std::vector<std::string> accelerator_names(const Catalog& catalog) {
  std::vector<std::string> result = names_of(catalog.accelerators);
  for (const Accelerator& accelerator : catalog.accelerators) {
    result.insert(result.end(), accelerator.aliases.begin(), accelerator.aliases.end());
  }
  return result;
}

std::vector<std::string> machine_names(const Catalog& catalog, const Provider& provider) {
  std::vector<std::string> result;
  for (const Machine& machine : catalog.machines) {
    if (machine.provider == provider) result.push_back(machine.name);
  }
  return result;
}

void Builder::links(std::span<const Entry> entries) {
  const SourceTable sources(catalog.sources);
  for (const Entry& entry : entries) {
    Reader reader(texts, sources, entry);
    LinkClass link;
    link.name = entry.at.text;
    link.efficiency = reader.fact<double>("efficiency", parse_fraction);
    link.latency = reader.fact<Seconds>("latency", parse_duration, Need::not_negative);
    link.call = reader.optional_fact<Seconds>("call", parse_duration, Need::not_negative);
    link.pieces = reader.optional_fact<double>("pieces", parse_number, Need::not_negative);
    link.reduction = reader.optional_fact<double>("reduction", parse_number);
    link.flow = reader.optional_fact<BytesPerSecond>("flow", parse_bandwidth);
    if (link.efficiency.high > 1.1)
      reader.complain("efficiency", "a link moves more than is printed for it");
    reader.finish();
    catalog.links.push_back(std::move(link));
  }
}

void Builder::accelerators(std::span<const Entry> entries) {
  const SourceTable sources(catalog.sources);
  for (const Entry& entry : entries) {
    Reader reader(texts, sources, entry);
    Accelerator made;
    made.name = entry.at.text;
    made.aliases = reader.lines("aliases");
    // A cloud's name that differs from ours in case only is none.
    std::erase_if(made.aliases,
                  [&](const std::string& alias) { return same_name(alias, made.name); });
    made.kind = reader.word("kind", from_text<AcceleratorKind>, texts_of<AcceleratorKind>)
                    .value_or(AcceleratorKind::gpu);
    made.vendor = reader.text("vendor");
    made.architecture = reader.text("architecture");
    made.year = reader.integer("year", 0);
    std::vector<std::string> keys;  // the reader keeps views of what was asked for
    for (const Precision p : kPrecisions) keys.push_back(fmt::format("peak.{}", to_text(p)));
    bool any = false;
    for (std::size_t i = 0; i < kPrecisions.size(); ++i) {
      made.peak[i] = reader.optional_fact<FlopsPerSecond>(keys[i], parse_flop_rate);
      any = any || entry.find(keys[i]);
    }
    if (!any)
      reader.complain("peak", "'peak' is missing", "peak: {fp32: 15.7 TFLOPS, fp16: 125 TFLOPS}");
    made.memory = reader.fact<Bytes>("memory", parse_bytes);
    made.usable_memory = reader.optional_fact<Bytes>("usable_memory", parse_bytes);
    made.memory_bandwidth = reader.fact<BytesPerSecond>("memory_bandwidth", parse_bandwidth);
    made.peer_bandwidth = reader.optional_fact<BytesPerSecond>("peer_bandwidth", parse_bandwidth);
    made.peer_link = reader.text("peer_link");
    if (made.peer_link.empty()) made.peer_link = "pcie";
    reader.reference(
        "peer_link", "link", [&](auto name) { return catalog.find_link(name) != nullptr; },
        [&] { return names_of(catalog.links); });
    made.host_bandwidth = reader.fact<BytesPerSecond>("host_bandwidth", parse_bandwidth);
    made.cores_per_device = reader.integer("cores_per_device", 1, 1, kMostInMachine);
    made.torus_dimensions = reader.integer("torus_dimensions", 0);
    made.power_watts = reader.integer("power_watts", 0);
    made.notes = reader.text("notes");
    reader.finish();
    check_alias(reader, catalog, made);
    catalog.accelerators.push_back(std::move(made));
  }
}

void Builder::machines(std::span<const Entry> entries) {
  const SourceTable sources(catalog.sources);
  for (const Entry& entry : entries) {
    Reader reader(texts, sources, entry);
    Machine made;
    made.provider = provider_in(reader);
    made.name = reader.text("machine");
    made.vcpus = reader.required_integer("vcpus", 1);
    made.memory = reader.fact<Bytes>("memory_gib", scaled<Bytes>(kGib));
    made.network = reader.fact<BytesPerSecond>("network_gbps", scaled<BytesPerSecond>(kGigabit));
    const std::string accelerator = reader.text("accelerator");
    reader.reference(
        "accelerator", "accelerator",
        [&](auto name) { return catalog.find_accelerator(name) != nullptr; },
        [&] { return accelerator_names(catalog); });
    if (const Accelerator* found = catalog.find_accelerator(accelerator))
      made.accelerator = found->name;
    made.accelerator_count = reader.integer("accelerators", 0, 0, kMostInMachine);
    if (accelerator.empty() != (made.accelerator_count == 0)) {
      reader.complain("accelerators", "accelerator and accelerators go together",
                      "A100-SXM4-40,8 or two empty fields");
    }
    made.peer_fabric = reader.text("peer_fabric");
    made.network_link = reader.text("network_link");
    if (made.network_link.empty()) made.network_link = "ethernet";
    for (const char* field : {"peer_fabric", "network_link"}) {
      reader.reference(
          field, "link", [&](auto name) { return catalog.find_link(name) != nullptr; },
          [&] { return names_of(catalog.links); });
    }
    const std::string services = reader.text("services");
    for (const std::string_view word : words(services)) {
      if (const auto service = service_named(word))
        made.services.push_back(*service);
      else
        reader.complain("services", fmt::format("unknown service '{}'", word),
                        fmt::format("one of: {}", fmt::join(service_names(), ", ")));
    }
    if (const auto least = reader.optional_fact<Seconds>("minimum_rental", parse_duration))
      made.minimum_rental = least->value;
    made.notes = reader.text("notes");
    catalog.machines.push_back(std::move(made));
  }
}

void Builder::slices(std::span<const Entry> entries) {
  const SourceTable sources(catalog.sources);
  for (const Entry& entry : entries) {
    Reader reader(texts, sources, entry);
    TpuSlice made;
    made.name = reader.text("slice");
    const std::string accelerator = reader.text("accelerator");
    reader.reference(
        "accelerator", "accelerator",
        [&](auto name) { return catalog.find_accelerator(name) != nullptr; },
        [&] { return accelerator_names(catalog); });
    if (const Accelerator* found = catalog.find_accelerator(accelerator))
      made.accelerator = found->name;
    made.chips = reader.required_integer("chips", 1, kMostNodes);
    made.torus = torus_axes(reader, reader.text("torus"));
    const auto product =
        std::accumulate(made.torus.begin(), made.torus.end(), std::int64_t{1}, std::multiplies<>());
    if (!made.torus.empty() && product != made.chips) {
      reader.complain("torus",
                      fmt::format("a torus of {} chips in a slice of {}", product, made.chips));
    }
    made.wraps = reader.flag("wraps", "yes", "no");
    made.hosts = reader.required_integer("hosts", 1);
    if (made.chips % made.hosts != 0) {
      reader.complain("hosts", fmt::format("{} chips on {} hosts are not the same number on each",
                                           made.chips, made.hosts));
    }
    made.machine = reader.text("machine");
    reader.reference(
        "machine", "machine",
        [&](auto name) {
          return std::ranges::any_of(catalog.providers, [&](const ProviderRules& p) {
            return catalog.find_machine(p.id, name) != nullptr;
          });
        },
        [&] { return names_of(catalog.machines); });
    catalog.slices.push_back(std::move(made));
  }
}

void Builder::attachments(std::span<const Entry> entries) {
  const SourceTable sources(catalog.sources);
  for (const Entry& entry : entries) {
    Reader reader(texts, sources, entry);
    AttachmentRule made;
    made.service = service_in(reader);
    made.machine = reader.text("machine");
    const Provider provider = provider_with(made.service);
    reader.reference(
        "machine", "machine",
        [&](auto name) { return catalog.find_machine(provider, name) != nullptr; },
        [&] { return machine_names(catalog, provider); });
    const std::string accelerator = reader.text("accelerator");
    reader.reference(
        "accelerator", "accelerator",
        [&](auto name) { return catalog.find_accelerator(name) != nullptr; },
        [&] { return accelerator_names(catalog); });
    if (const Accelerator* found = catalog.find_accelerator(accelerator))
      made.accelerator = found->name;
    const std::string counts = reader.text("counts");  // the words point into it
    for (const std::string_view word : words(counts)) {
      const Parsed<std::int64_t> count = parse_integer(word);
      if (!count || *count < 1 || *count > 1024) {
        reader.complain("counts", fmt::format("'{}' is not a number of accelerators", word),
                        "counts such as 1 2 4 8; none: not allowed");
        continue;
      }
      made.counts.push_back(static_cast<int>(*count));
    }
    std::ranges::sort(made.counts);
    catalog.attachments.push_back(std::move(made));
  }
}

void Builder::stacks(std::span<const Entry> entries) {
  const SourceTable sources(catalog.sources);
  for (const Entry& entry : entries) {
    Reader reader(texts, sources, entry);
    SoftwareStack made;
    made.name = reader.text("stack");
    made.speed = reader.fact<double>("speed", parse_number);
    made.host = reader.fact<Seconds>("host_us", scaled<Seconds>(1e-6), Need::not_negative);
    catalog.stacks.push_back(std::move(made));
  }
}

void Builder::stack_classes(std::span<const Entry> entries) {
  const SourceTable sources(catalog.sources);
  for (const Entry& entry : entries) {
    Reader reader(texts, sources, entry);
    catalog.stack_classes.push_back({reader.text("stacks"), reader.text("class")});
  }
}

void Builder::stack_memories(std::span<const Entry> entries) {
  constexpr std::int64_t kMostBufferBytes = 100;
  const SourceTable sources(catalog.sources);
  for (const Entry& entry : entries) {
    Reader reader(texts, sources, entry);
    StackMemory made;
    made.stacks = reader.text("stacks");
    made.reserve = reader.fact<Bytes>("reserve_gb", scaled<Bytes>(1e9));
    made.buffers_per_parameter =
        Bytes(double(reader.integer("buffer_bytes_per_parameter", 0, 0, kMostBufferBytes)));
    made.keeps_scores = reader.integer("keeps_scores", 0, 0, 1) == 1;
    catalog.stack_memories.push_back(std::move(made));
  }
}

void Builder::efficiencies(std::span<const Entry> entries) {
  const SourceTable sources(catalog.sources);
  const auto known = [&](std::string_view name) {
    return catalog.find_accelerator(name) != nullptr ||
           std::ranges::any_of(catalog.accelerators, [&](const Accelerator& a) {
             return same_name(a.architecture, name);
           });
  };
  const auto names = [&] {
    std::vector<std::string> result = accelerator_names(catalog);
    for (const Accelerator& a : catalog.accelerators) result.push_back(a.architecture);
    return result;
  };
  for (const Entry& entry : entries) {
    Reader reader(texts, sources, entry);
    Efficiency made;
    made.accelerator = reader.text("accelerator");
    reader.reference("accelerator", "accelerator or architecture", known, names);
    if (const Accelerator* found = catalog.find_accelerator(made.accelerator))
      made.accelerator = found->name;
    made.precision = reader.word("precision", from_text<Precision>, texts_of<Precision>)
                         .value_or(Precision::fp32);
    made.stack = reader.text("stack");
    made.convolution = reader.fact<double>("convolution", parse_fraction);
    if (entry.find("winograd")) made.winograd = reader.fact<double>("winograd", parse_number);
    made.matmul = reader.fact<double>("matmul", parse_fraction);
    made.attention = reader.fact<double>("attention", parse_fraction);
    made.memory = reader.fact<double>("memory", parse_fraction);
    made.half_size = reader.fact<Flops>("half_size_gflop", scaled<Flops>(1e9), Need::not_negative);
    made.launch = reader.fact<Seconds>("launch_us", scaled<Seconds>(1e-6), Need::not_negative);
    if (entry.find("host_us"))
      made.host = reader.fact<Seconds>("host_us", scaled<Seconds>(1e-6), Need::not_negative);
    made.step_spread = reader.fact<double>("step_spread", parse_number);
    // Winograd convolutions do fewer operations than are counted, so a little more than the peak is
    // possible.
    for (const char* field : {"convolution", "matmul", "attention", "memory"}) {
      const Cell* cell = entry.find(field);
      const Parsed<double> value = cell ? parse_fraction(cell->text) : Parsed<double>{0.0};
      if (value && *value > 1.5)
        reader.complain(field,
                        fmt::format("{} of the peak is more than any kernel reaches", cell->text));
    }
    catalog.efficiencies.push_back(std::move(made));
  }
}

}  // namespace reckon::catalog_text
