#include "sim/accuracy/evidence/kernel.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "sim/accuracy/named_csv.h"
#include "sim/base/unit_text.h"

namespace reckon {
namespace {

double square(double x) { return x * x; }
/// What is not said is like no other.
bool same(WordId a, WordId b) { return a == b && a != 0; }
double near(double distance, double length) { return std::exp(-std::abs(distance) / length); }

/// 1 for the same, `share` for what is less than the same but of one kind.
double partly(bool equal, bool of_a_kind, double share) {
  return equal ? 1 : of_a_kind ? share : 0;
}

double accelerators_alike(const EvidenceFeatures& a, const EvidenceFeatures& b,
                          const EvidenceKernel& k) {
  const double precision = a.precision == b.precision ? 1 : k.precision;
  if (same(a.accelerator, b.accelerator)) return precision;
  const double generation = k.generation * near(a.year - b.year, k.years);
  if (!same(a.architecture, b.architecture)) return precision * k.architecture * generation;
  return precision * k.architecture * (generation + 1 - k.generation);
}

double networks_alike(const EvidenceFeatures& a, const EvidenceFeatures& b,
                      const EvidenceKernel& k) {
  if (!same(a.network, b.network)) return a.domain == b.domain ? k.domain : 0;
  const bool sized = a.domain == Domain::language;
  const double size = sized ? near(a.log_parameters - b.log_parameters, k.parameters) : 1;
  return k.domain + (1 - k.domain) * size;
}

/// Of what the documentation of a run leaves open.
double left_open(const EvidenceFeatures& f, const EvidenceKernel& k) {
  return f.trust == 'C' ? k.documented_c : f.trust == 'B' ? k.documented_b : 0;
}

}  // namespace

double device_covariance(const EvidenceFeatures& a, const EvidenceFeatures& b,
                         const EvidenceKernel& k) {
  // What convolutional networks say of a chip does not hold for language models.
  if ((a.domain == Domain::language) != (b.domain == Domain::language)) return 0;
  const double accelerators = accelerators_alike(a, b, k);
  const double networks = networks_alike(a, b, k);
  const double stacks =
      partly(same(a.stack, b.stack), same(a.stack_family, b.stack_family), k.family);
  const double domains = a.domain == b.domain ? 1 : k.other_domain;
  const double publishers =
      partly(same(a.source, b.source), same(a.publisher, b.publisher), k.publisher);
  double sum = square(k.all) * domains + square(k.accelerator) * accelerators +
               square(k.network) * networks + square(k.stack) * stacks * domains +
               square(k.network_stack) * networks * stacks +
               square(k.network_accelerator) * networks * accelerators;
  const double local = networks * stacks * accelerators;
  if (local > 0)
    sum += square(k.configuration) * local * near(a.log_count - b.log_count, k.count) *
           near(a.log_batch - b.log_batch, k.batch);
  if (publishers > 0) sum += publishers * square(k.source);
  if (publishers > 0 && same(a.network, b.network))
    sum += publishers * (square(k.source_network) + left_open(a, k) * left_open(b, k));
  const auto scale = [&](const EvidenceFeatures& f) {
    return k.domain_scale[static_cast<std::size_t>(f.domain)];
  };
  return sum * scale(a) * scale(b);
}

double link_covariance(const EvidenceFeatures& a, const EvidenceFeatures& b,
                       const EvidenceKernel& k) {
  if (a.accelerators == 1 || b.accelerators == 1 || a.many_nodes != b.many_nodes) return 0;
  const double publishers =
      partly(same(a.source, b.source), same(a.publisher, b.publisher), k.publisher);
  const double stacks =
      partly(same(a.stack, b.stack), same(a.stack_family, b.stack_family), k.family);
  return square(k.links) + square(k.links_source) * publishers +
         square(k.links_kind) * (same(a.link, b.link) ? 1 : 0) + square(k.links_stack) * stacks;
}

double device_variance(const EvidenceFeatures& f, const EvidenceKernel& k) {
  const double sum = square(k.all) + square(k.accelerator) + square(k.network) + square(k.stack) +
                     square(k.network_stack) + square(k.network_accelerator) +
                     square(k.configuration) + square(k.source) + square(k.source_network) +
                     square(left_open(f, k));
  return sum * square(k.domain_scale[static_cast<std::size_t>(f.domain)]);
}

double link_variance(const EvidenceFeatures& f, const EvidenceKernel& k) {
  if (f.accelerators == 1) return 0;
  return square(k.links) + square(k.links_source) + square(k.links_kind) + square(k.links_stack);
}

std::vector<KernelNumber> numbers_of(EvidenceKernel& k) {
  constexpr double kMost = 3;       // of an amplitude: a factor of 20
  constexpr double kLongest = 100;  // years, or of ln
  std::vector<KernelNumber> all;
  const auto amplitude = [&](std::string name, double& value) {
    all.push_back({std::move(name), &value, 0, kMost});
  };
  const auto share = [&](std::string name, double& value) {
    all.push_back({std::move(name), &value, 0, 1});
  };
  const auto length = [&](std::string name, double& value) {
    all.push_back({std::move(name), &value, 0.1, kLongest});
  };
  amplitude("all", k.all);
  amplitude("accelerator", k.accelerator);
  amplitude("network", k.network);
  amplitude("stack", k.stack);
  amplitude("network_stack", k.network_stack);
  amplitude("network_accelerator", k.network_accelerator);
  amplitude("configuration", k.configuration);
  amplitude("source", k.source);
  amplitude("source_network", k.source_network);
  amplitude("documented_b", k.documented_b);
  amplitude("documented_c", k.documented_c);
  amplitude("links", k.links);
  amplitude("links_source", k.links_source);
  amplitude("links_kind", k.links_kind);
  amplitude("links_stack", k.links_stack);
  share("other_domain", k.other_domain);
  share("architecture", k.architecture);
  share("generation", k.generation);
  share("precision", k.precision);
  share("domain", k.domain);
  share("family", k.family);
  share("publisher", k.publisher);
  length("years", k.years);
  length("count", k.count);
  length("batch", k.batch);
  length("parameters", k.parameters);
  all.push_back({"noise", &k.noise, 0.005, 1});  // measurements are not exact
  all.push_back({"interval", &k.interval, 1, 10});
  for (std::size_t i = 0; i < kDomains; ++i)
    all.push_back(
        {fmt::format("scale.{}", to_text(static_cast<Domain>(i))), &k.domain_scale[i], 0.1, 10});
  return all;
}

std::vector<KernelNumber> memory_numbers_of(EvidenceKernel& k) {
  return {{"memory_all", &k.memory_all, 0, 1},
          {"memory_stack", &k.memory_stack, 0, 1},
          {"memory_network", &k.memory_network, 0, 1},
          {"memory_source", &k.memory_source, 0, 1}};
}

static std::vector<KernelNumber> all_numbers_of(EvidenceKernel& kernel) {
  std::vector<KernelNumber> all = numbers_of(kernel);
  for (KernelNumber& n : memory_numbers_of(kernel)) all.push_back(std::move(n));
  return all;
}

Expected<EvidenceKernel> read_evidence_kernel(std::string_view file_name, std::string_view bytes) {
  constexpr std::array<std::string_view, 2> kColumns{"name", "value"};
  auto csv = NamedCsv::open(file_name, bytes, kColumns);
  if (!csv) return tl::unexpected(std::move(csv.error()));
  EvidenceKernel kernel;
  auto numbers = all_numbers_of(kernel);
  Diagnostics problems;
  const auto wrong = [&](int line, std::string what) {
    Diagnostic d;
    d.at = {std::string(file_name), line, 1};
    d.what = std::move(what);
    problems.push_back(std::move(d));
  };
  PublishedCounts counts;
  while (csv->next(counts)) {
    const std::string_view name = csv->text("name");
    const auto at = std::ranges::find(numbers, name, &KernelNumber::name);
    if (at == numbers.end()) {
      wrong(csv->line(), fmt::format("'{}' is no number of the kernel, or is there twice", name));
      continue;
    }
    const auto value = parse_number(csv->text("value"));
    if (!value || !(*value >= at->least && *value <= at->most))
      wrong(csv->line(), fmt::format("{}: not a number from {} to {}", name, at->least, at->most));
    else
      *at->value = *value;
    numbers.erase(at);
  }
  for (const KernelNumber& n : numbers) wrong(1, fmt::format("no row for {}", n.name));
  problems.insert(problems.end(), counts.problems.begin(), counts.problems.end());
  if (!problems.empty()) return tl::unexpected(std::move(problems));
  return kernel;
}

std::string evidence_kernel_csv(EvidenceKernel kernel) {
  std::string text = "name,value\n";
  for (const KernelNumber& n : all_numbers_of(kernel))
    text += fmt::format("{},{:.4g}\n", n.name, *n.value);
  return text;
}

}  // namespace reckon
