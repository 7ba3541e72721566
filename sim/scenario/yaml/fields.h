#pragma once
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <concepts>
#include <span>
#include <type_traits>
#include <utility>

#include "sim/scenario/yaml/reader.h"

// Tables of fields: how to write one row. `T` is the struct of the block.
namespace reckon {

template <class T>
struct Field : FieldInfo {
  std::function<void(Reader&, const YamlNode&, T&)> read;
};
template <class T>
using Fields = std::vector<Field<T>>;

/// The rows of a table without their targets, for messages and the schema.
template <auto Table>
std::vector<const FieldInfo*> infos_of() {
  std::vector<const FieldInfo*> infos;
  for (const auto& field : Table()) infos.push_back(&field);
  return infos;
}

/// A value is written to its member through its own type, optional or not.
template <class M>
struct Unwrapped {
  using type = M;
};
template <class M>
struct Unwrapped<std::optional<M>> {
  using type = M;
};
template <class M>
using unwrapped = typename Unwrapped<M>::type;

template <class T, class M>
Field<T> number_field(std::string_view key, M T::*member, Form form, std::string_view doc,
                      std::string_view example) {
  return {{key, form, doc, example}, [member, form](Reader& r, const YamlNode& n, T& t) {
            using V = unwrapped<M>;
            if (const auto v = r.number(n, form)) {
              if constexpr (std::is_arithmetic_v<V>)
                t.*member = static_cast<V>(*v);
              else
                t.*member = V{*v};
            }
          }};
}

template <class T>
Field<T> text_field(std::string_view key, std::string T::*member, std::string_view doc,
                    std::string_view example) {
  return {{key, Form{Form::Kind::text}, doc, example},
          [member](Reader& r, const YamlNode& n, T& t) {
            if (auto v = r.text(n)) t.*member = std::move(*v);
          }};
}

template <class T>
Field<T> name_field(std::string_view key, std::string T::*member, std::string_view doc,
                    std::string_view example) {
  return {{key, Form{Form::Kind::name}, doc, example},
          [member](Reader& r, const YamlNode& n, T& t) {
            if (auto v = r.name(n)) t.*member = std::move(*v);
          }};
}

template <class T, class M>
Field<T> boolean_field(std::string_view key, M T::*member, std::string_view doc,
                       std::string_view example) {
  return {{key, Form{Form::Kind::boolean}, doc, example},
          [member](Reader& r, const YamlNode& n, T& t) {
            if (const auto v = r.boolean(n)) t.*member = *v;
          }};
}

/// One of an enum's words (sim/base/words.h).
template <class T, class M>
Field<T> word_field(std::string_view key, M T::*member, std::string_view doc,
                    std::string_view example) {
  using E = unwrapped<M>;
  Form form{Form::Kind::word};
  form.words = texts_of<E>();
  return {{key, form, doc, example},
          [member, texts = form.words](Reader& r, const YamlNode& n, T& t) {
            if (const auto i = r.word(n, texts)) t.*member = *from_text<E>(texts[*i]);
          }};
}

/// The name of a provider or a service: the catalog says which there are.
template <class T, class M>
Field<T> id_field(std::string_view key, M T::*member, std::string_view doc,
                  std::string_view example) {
  return {{key, Form{Form::Kind::text}, doc, example},
          [member](Reader& r, const YamlNode& n, T& t) {
            if (auto v = r.text(n)) t.*member = unwrapped<M>{std::move(*v)};
          }};
}

/// Any other form: `read` does the work.
template <class T, class Read>
Field<T> field(std::string_view key, Form form, Read read, std::string_view doc,
               std::string_view example) {
  return {{key, std::move(form), doc, example}, std::move(read)};
}

template <class T>
Field<T> required(Field<T> f) {
  f.required = true;
  return f;
}

/// Earlier releases called it `former`.
template <class T>
Field<T> renamed(std::string_view former, Field<T> f) {
  f.former = former;
  return f;
}

/// Walks a block by its table. Unknown, repeated and missing keys are reported; false: it is no
/// map.
template <class T>
bool read_fields(Reader& reader, const YamlNode& node, const Fields<T>& table, T& target) {
  if (!reader.expect(node, YamlNode::Kind::map)) return false;
  const auto in = [&] { return reader.path().empty() ? "" : " in " + reader.path(); };
  for (const YamlNode::Entry& entry : node.entries) {
    if (reader.full()) return true;
    const auto found =
        std::ranges::find_if(table, [&](const auto& f) { return f.is_called(entry.key); });
    if (found == table.end()) {
      std::vector<std::string> keys;
      for (const auto& f : table) keys.emplace_back(f.key);
      reader.remember_misspelt(nearest(entry.key, keys));
      reader.error(entry.key_at,
                   fmt::format("unknown key '{}'{}{}", shortened(entry.key), in(),
                               did_you_mean(entry.key, keys)),
                   fmt::format("allowed here: {}", fmt::join(keys, ", ")));
    } else if (node.find(entry.key) != &entry) {
      reader.report_duplicate(node, entry);
    } else if (entry.key == found->former && node.has(found->key)) {
      reader.error(entry.key_at,
                   fmt::format("'{}' is '{}' of earlier releases", entry.key, found->key),
                   "one of the two is enough");
    } else {
      const Reader::Scope scope(reader, found->key, place_of(entry), &*found);
      found->read(reader, entry.value, target);
    }
  }
  for (const auto& f : table)
    if (f.required && !node.has(f.key) && !reader.misspelt(std::string(f.key)))
      reader.error(fmt::format("{} needs '{}'", reader.subject(), f.key),
                   fmt::format("{}\nexample: {}: {}", f.doc, f.key, f.example));
  return true;
}

/// A block below a key: member is the struct or an optional of it; `check` sees the whole block.
template <auto Table, class T, class M>
Field<T> block_field(
    std::string_view key, M T::*member,
    std::type_identity_t<std::function<void(Reader&, const YamlNode&, const unwrapped<M>&)>> check,
    std::string_view doc, std::string_view example) {
  Form form{Form::Kind::block};
  form.fields = &infos_of<Table>;
  return {{key, form, doc, example}, [member, check](Reader& r, const YamlNode& n, T& t) {
            unwrapped<M> value{};
            if (!read_fields(r, n, Table(), value)) return;
            if (check) check(r, n, value);
            t.*member = std::move(value);
          }};
}

/// Reports unless exactly one of the keys (at most one: where `least` is 0) is there.
void check_one_of(Reader& reader, const YamlNode& map, std::span<const std::string_view> keys,
                  int least);

// ---- forms, with the limits of what is taken seriously
// ------------------------------------------------------
inline constexpr double kMostNodes = 65'536;  // of a pool: sim/cluster counts slots in 16 bits
inline constexpr double kMostNodesOfCluster = 1'048'576;     // x 1,024 accelerators is an int
inline constexpr double kMostWorkers = 1e6;                  // workers
inline constexpr double kMostBatch = 1e8;                    // samples
inline constexpr double kMostEpochs = 1e6;                   // epochs
inline constexpr double kMostSteps = 1e12;                   // optimizer steps
inline constexpr double kLongestTime = 100.0 * 365 * 86400;  // 100 years, seconds
// 10 years, seconds; sim/cluster/never.h counts on it.
inline constexpr double kLatestSubmit = 10.0 * 365 * 86400;

inline Form whole(double low, double high) { return {Form::Kind::whole, low, high}; }
inline Form above_zero(Form::Kind kind, double high) { return {kind, 0, high, true}; }
inline Form duration_above_zero() { return above_zero(Form::Kind::duration, kLongestTime); }
inline Form duration_from_zero() { return {Form::Kind::duration, 0, kLongestTime}; }
inline Form fraction(bool above_low = false) { return {Form::Kind::fraction, 0, 1, above_low}; }
inline Form choice(std::string_view note) {
  Form form{Form::Kind::choice};
  form.note = note;
  return form;
}

// ---- the tables
// -----------------------------------------------------------------------------------------------
const Fields<Scenario>& scenario_fields();
const Fields<WorkloadSpec>& workload_fields();
const Fields<KarpenterSpec>& karpenter_fields();
const Fields<ClusterAutoscalerSpec>& cluster_autoscaler_fields();
const Fields<NodeAutoProvisioningSpec>& node_auto_provisioning_fields();
const Fields<SlurmPowerSpec>& slurm_power_fields();
Field<WorkloadSpec> optimizer_field();
Field<WorkloadSpec> data_field();
const Fields<StrategySpec>& strategy_fields();
const Fields<ClusterSpec>& cluster_fields();
const Fields<PoolSpec>& pool_fields();
const Fields<PricesSpec>& prices_fields();
const Fields<DisruptionsSpec>& disruptions_fields();
const Fields<ServingSpec>& serving_fields();
const Fields<PlanSpec>& plan_fields();
const Fields<PlannedSpec>& planned_fields();
const Fields<TraceSpec>& trace_spec_fields();
const Fields<ArrivalsSpec>& arrivals_fields();
/// A time, a list, or a law (time_law.cpp); nullopt: reported.
Form time_law_form();
std::optional<TimeLaw> read_time_law(Reader& reader, const YamlNode& node);
const Fields<SchedulerSpec>& scheduler_fields();
const Fields<SlurmSpec>& slurm_fields();
const Fields<KueueSpec>& kueue_fields();

// Checks of whole blocks, behind their tables.
void check_workload(Reader&, const YamlNode&, const WorkloadSpec&);
void check_strategy(Reader&, const YamlNode&, const StrategySpec&);
void check_cluster(Reader&, const YamlNode&, const ClusterSpec&);
void check_prices(Reader&, const YamlNode&, const PricesSpec&);
void check_serving(Reader&, const YamlNode&, const ServingSpec&);
void check_arrivals(Reader&, const YamlNode&, const ArrivalsSpec&);
void check_slurm(Reader&, const YamlNode&, const SlurmSpec&);
void check_kueue(Reader&, const YamlNode&, const KueueSpec&);
/// A trace and arrivals need who schedules them and where; `root` is the whole scenario.
void check_queue(Reader&, const YamlNode& root, const Scenario&);
/// Money without an exchange rate cannot be added up: reported where it stands.
/// What an inline machine costs (prices.cpp).
void read_purchase(Reader&, const YamlNode&, MachineInline&);
void read_power(Reader&, const YamlNode&, MachineInline&);
void read_tariff(Reader&, const YamlNode&, MachineInline&);
void check_machine_costs(Reader&, const YamlNode&, const MachineInline&);
void check_currency(Reader&, const SourcePlace& at, std::string_view path, const MoneyText&,
                    const PricesSpec*);

}  // namespace reckon
