#include "sim/scenario/plan.h"
#include "sim/scenario/yaml/fields.h"

// What only a real run reads: the optimizer's settings and where the samples are.
namespace reckon {
namespace {

/// `optimizer:` as a map: its name and what a real run needs.
struct OptimizerKeys : OptimizerSettings {
  std::string kind;
};

void read_kind(Reader& r, const YamlNode& n, std::string& kind) {
  const std::vector<std::string> words = texts_of<Optimizer>();
  if (const auto i = r.word(n, words)) kind = words[*i];
}

const Fields<OptimizerKeys>& optimizer_fields() {
  using K = OptimizerKeys;
  const auto number = [](std::string_view key, std::optional<double> K::*member, Form form,
                         std::string_view doc, std::string_view example) {
    return number_field(key, member, form, doc, example);
  };
  const auto steps = [](std::string_view key, std::optional<std::int64_t> K::*member, Form form,
                        std::string_view doc, std::string_view example) {
    return number_field(key, member, form, doc, example);
  };
  constexpr std::optional<LearningRateSchedule> K::*kSchedule = &K::schedule;
  const Form rate = above_zero(Form::Kind::number, 1e6);
  const Form share = fraction();
  const Form below_one{Form::Kind::fraction, 0, 0.999999};
  const Form from_zero{Form::Kind::number, 0, 1e6};
  static const Fields<K> table{
      field<K>(
          "kind", Form{.kind = Form::Kind::word, .words = texts_of<Optimizer>()},
          [](Reader& r, const YamlNode& n, K& k) { read_kind(r, n, k.kind); },
          "sgd (with momentum), adamw, adamw_8bit, lion, adafactor or muon.", "adamw"),
      number("learning_rate", &K::learning_rate, rate, "Its highest value, behind the warm-up.",
             "0.0006"),
      number("momentum", &K::momentum, below_one, "Of sgd.", "0.9"),
      number("beta1", &K::beta1, below_one, "Of adamw.", "0.9"),
      number("beta2", &K::beta2, below_one, "Of adamw.", "0.95"),
      number("epsilon", &K::epsilon, rate, "Of adamw.", "0.00000001"),
      number("weight_decay", &K::weight_decay, from_zero,
             "Of matrices and tables; norms and biases do not decay.", "0.1"),
      number("clip_norm", &K::clip_norm, from_zero, "Longest gradient; 0: it is not clipped.", "1"),
      word_field("schedule", kSchedule, "Of the learning rate.", "cosine"),
      steps("warmup_steps", &K::warmup_steps, Form{Form::Kind::whole, 0, kMostSteps},
            "Optimizer steps in which the learning rate rises from 0.", "2000"),
      steps("decay_every", &K::decay_every, whole(1, kMostSteps),
            "Optimizer steps between two decays of schedule step.", "30000"),
      number("decay_factor", &K::decay_factor, share,
             "What the learning rate is multiplied by at each.", "0.1"),
      number("final_fraction", &K::final_fraction, share,
             "Of the learning rate, at the last step of schedule cosine.", "0.1"),
  };
  return table;
}

const Fields<DataSpec>& data_fields() {
  constexpr std::optional<ImageCrop> DataSpec::*kCrop = &DataSpec::crop;
  constexpr std::optional<std::int64_t> DataSpec::*kResize = &DataSpec::resize;
  constexpr std::optional<bool> DataSpec::*kFlip = &DataSpec::flip;
  constexpr std::optional<DamagedSample> DataSpec::*kDamaged = &DataSpec::damaged;
  constexpr std::optional<std::int64_t> DataSpec::*kThreads = &DataSpec::threads;
  static const Fields<DataSpec> table{
      required(word_field("format", &DataSpec::format, "How the samples are stored.", "cifar10")),
      text_field("path", &DataSpec::path,
                 "File or folder, relative to the scenario, or s3://BUCKET/KEY; synthetic data and "
                 "clicks have none.",
                 "data/cifar-10-batches-bin"),
      text_field("endpoint", &DataSpec::endpoint,
                 "Of the S3-compatible store that the path is in; default: AWS_ENDPOINT_URL, else "
                 "Amazon's.",
                 "http://127.0.0.1:9000"),
      text_field("validation", &DataSpec::validation,
                 "As path, of the samples that evaluation passes read; cifar10, mnist, synthetic "
                 "data and clicks have some without it.",
                 "data/validation"),
      word_field("crop", kCrop,
                 "Of images: a random part (default), the middle, or none, where all are of the "
                 "model's size.",
                 "center"),
      number_field(
          "resize", kResize, whole(1, 65'536),
          "Pixels of the shorter side before crop center; default: 256/224 of the model's.", "256"),
      boolean_field("flip", kFlip, "Of images: one in two is mirrored; default: with crop random.",
                    "false"),
      word_field("damaged", kDamaged,
                 "Of images: one that cannot be decoded ends the run (fail, the default), or the "
                 "next is taken in its place (skip).",
                 "skip"),
      number_field(
          "threads", kThreads, whole(1, 1024),
          "That read and decode samples ahead, of each rank; default: the machine's cores, "
          "shared by its ranks.",
          "8"),
  };
  return table;
}

/// Words of the formats that `is_one` names.
template <class IsOne>
std::string formats_where(IsOne is_one) {
  std::vector<std::string_view> names;
  for (const auto& word : words_of(DataFormat{}))
    if (is_one(word.value)) names.push_back(word.text);
  return fmt::format("{}", fmt::join(names, ", "));
}

void check_store(Reader& reader, const YamlNode& node, const DataSpec& data) {
  const bool in_store = is_store_location(data.path);
  constexpr std::string_view kScheme = "s3://";
  if (in_store && (data.path.size() == kScheme.size() || data.path[kScheme.size()] == '/'))
    reader.error("the path names no bucket", "path: s3://BUCKET/KEY");
  if (in_store && !reads_from_stores(data.format))
    reader.error(fmt::format("format {} is not read from a store", to_text(data.format)),
                 "from a store: " + formats_where(reads_from_stores));
  if (!node.has("endpoint")) return;
  if (!in_store) reader.error("an endpoint goes with a path in a store", "path: s3://BUCKET/KEY");
  if (!data.endpoint.starts_with("http://") && !data.endpoint.starts_with("https://"))
    reader.error("the endpoint is no http:// or https:// address",
                 "endpoint: http://127.0.0.1:9000");
}

void check_images(Reader& reader, const YamlNode& node, const DataSpec& data) {
  const bool images = holds_images(data.format);
  for (const char* key : {"crop", "resize", "flip", "damaged"})
    if (node.has(key) && !images)
      reader.error(fmt::format("'{}' goes with encoded images, not with format {}", key,
                               to_text(data.format)),
                   "formats of encoded images: " + formats_where(holds_images));
  if (images && data.resize && data.crop != ImageCrop::center)
    reader.error("'resize' goes with crop: center", "a random crop has a size of its own");
}

void check_validation(Reader& reader, const YamlNode& node, const DataSpec& data, bool made_up) {
  if (!node.has("validation")) return;
  if (made_up)
    return reader.error(
        fmt::format("format {} has no path of validation data", to_text(data.format)),
        "leave it out: samples that are not trained on are made up, too");
  if (data.format == DataFormat::characters)
    return reader.error("characters of another file have other ids", "format: text");
  if (is_store_location(data.validation) != is_store_location(data.path))
    reader.error("path and validation are not both in a store", "both s3://..., or neither");
}

void check_data(Reader& reader, const YamlNode& node, const DataSpec& data) {
  const bool made_up = is_made_up(data.format);
  if (node.has("path") == made_up && !reader.misspelt("path"))
    reader.error(data.format == DataFormat::clicks ? "clicks have no path"
                 : made_up                         ? "synthetic data has no path"
                                                   : reader.subject() + " needs 'path'",
                 made_up ? "leave it out" : "the file or folder with the samples");
  check_store(reader, node, data);
  check_images(reader, node, data);
  check_validation(reader, node, data, made_up);
}

}  // namespace

Field<WorkloadSpec> optimizer_field() {
  Form form{.kind = Form::Kind::choice,
            .words = texts_of<Optimizer>(),
            .note = "its name, or a map with its settings"};
  form.fields = &infos_of<optimizer_fields>;
  return field<WorkloadSpec>(
      "optimizer", form,
      [](Reader& r, const YamlNode& n, WorkloadSpec& w) {
        if (n.kind != YamlNode::Kind::map) return read_kind(r, n, w.optimizer);
        OptimizerKeys keys;
        if (!read_fields(r, n, optimizer_fields(), keys)) return;
        w.optimizer = keys.kind;
        w.optimizer_settings = keys;
      },
      "Decides the optimizer's state in memory; a map also says how a real run trains. Default: "
      "sgd for images, adamw for sequences.",
      "adamw");
}

Field<WorkloadSpec> data_field() {
  return block_field<data_fields>("data", &WorkloadSpec::data, check_data,
                                  "What a real run reads; default: synthetic. The simulator reads "
                                  "`dataset`.",
                                  "{format: cifar10, path: data/cifar-10-batches-bin}");
}

}  // namespace reckon
