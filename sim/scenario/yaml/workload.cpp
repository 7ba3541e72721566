#include "sim/scenario/yaml/fields.h"
#include "sim/scenario/yaml/model.h"
#include "sim/scenario/yaml/program.h"

namespace reckon {
namespace {

using Unit = TrainLength::Unit;
constexpr std::array<std::string_view, 5> kLengths{"epochs", "samples", "steps", "tokens",
                                                   "to_accuracy"};
constexpr std::array<std::string_view, 5> kFinetune{"lora", "qlora", "dora", "adapters",
                                                    "last_layers"};
// `train:` holds the length and, with tokens, the sequence length.
struct TrainKeys {
  TrainLength length;
  std::string starts_from;
  std::optional<std::int64_t> sequence_length;
};

Field<TrainKeys> length_field(std::string_view key, Unit unit, Form form, std::string_view doc,
                              std::string_view example) {
  return field<TrainKeys>(
      key, form,
      [unit, form](Reader& r, const YamlNode& n, TrainKeys& keys) {
        if (const auto v = r.number(n, form)) keys.length = {unit, *v};
      },
      doc, example);
}

Form sequence_length_form() { return whole(1, 1e8); }

const Fields<TrainKeys>& train_fields() {
  static const Fields<TrainKeys> table{
      length_field("epochs", Unit::epochs, above_zero(Form::Kind::number, kMostEpochs),
                   "Passes over the dataset.", "90"),
      length_field("samples", Unit::samples, above_zero(Form::Kind::count, 1e18),
                   "Samples to train on.", "300M"),
      length_field("steps", Unit::steps, whole(1, kMostSteps), "Optimizer steps.", "100000"),
      length_field("tokens", Unit::tokens, above_zero(Form::Kind::count, 1e18),
                   "Tokens to train on.", "300B"),
      length_field("to_accuracy", Unit::to_accuracy, fraction(true),
                   "Validation accuracy to reach.", "75.9%"),
      text_field("starts_from", &TrainKeys::starts_from,
                 "With to_accuracy: what the training begins with, scratch or a checkpoint that "
                 "published runs began with; default: scratch.",
                 "mlperf-checkpoint"),
      number_field("sequence_length", &TrainKeys::sequence_length, sequence_length_form(),
                   "Tokens of one sample; default: the model's own.", "2048"),
  };
  return table;
}

const Fields<DatasetInline>& dataset_fields() {
  static const Fields<DatasetInline> table{
      required(number_field("samples", &DatasetInline::samples, above_zero(Form::Kind::count, 1e15),
                            "Samples of one epoch.", "1281167")),
      required(number_field("bytes_per_sample", &DatasetInline::bytes_per_sample,
                            above_zero(Form::Kind::bytes, 1e15), "As stored and read.", "110kB")),
      number_field("decode", &DatasetInline::decode, duration_from_zero(),
                   "CPU time of one vCPU to decode and augment a sample; default: 0.", "8ms"),
      number_field("validation_samples", &DatasetInline::validation_samples,
                   above_zero(Form::Kind::count, 1e15),
                   "Samples of one evaluation pass; default: there are none.", "50000"),
  };
  return table;
}

const Fields<Finetune>& finetune_fields() {
  static const Fields<Finetune> table{
      required(field<Finetune>(
          "method",
          Form{.kind = Form::Kind::word,
               .words = {"lora", "qlora", "dora", "adapters", "last_layers"}},
          [](Reader& r, const YamlNode& n, Finetune& f) {
            if (const auto i = r.word(n, {"lora", "qlora", "dora", "adapters", "last_layers"}))
              f.method = kFinetune[*i];
          },
          "What is trained: adapters, or the network's last layers.", "lora")),
      number_field("rank", &Finetune::rank, whole(1, 65536), "Rank of the adapters.", "16"),
      number_field("layers", &Finetune::layers, whole(1, 65536),
                   "Of last_layers: number of layers with weights that are trained.", "1"),
  };
  return table;
}

/// Each method has a number of its own.
void check_finetune(Reader& reader, const YamlNode& node, const Finetune& finetune) {
  if (finetune.method.empty()) return;  // reported already
  const bool last = finetune.method == "last_layers";
  const std::string_view needed = last ? "layers" : "rank", other = last ? "rank" : "layers";
  if (!node.has(needed) && !reader.misspelt(std::string(needed)))
    reader.error(fmt::format("{} needs '{}'", reader.subject(), needed),
                 last ? "Layers with weights that are trained, from the end.\nexample: layers: 1"
                      : "Rank of the adapters.\nexample: rank: 16");
  if (const auto* entry = node.find(other))
    reader.error(entry->key_at,
                 fmt::format("'{}' does not belong to method {}", other, finetune.method),
                 fmt::format("it has '{}'", needed));
}

constexpr double kMostCopies = 8;  // nodes

const Fields<LocalCheckpointSpec>& local_checkpoint_fields() {
  using L = LocalCheckpointSpec;
  static const Fields<L> table{
      word_field("to", &L::to,
                 "The memory of the nodes' hosts, each part also on a peer, or the nodes' own "
                 "disks; default: peer_memory.",
                 "peer_memory"),
      required(number_field("every", &L::every, duration_above_zero(),
                            "Time of useful work between two of them.", "1min")),
      number_field("replicas", &L::replicas, whole(1, kMostCopies),
                   "Nodes that hold each part, its own included; default: 2 in peer_memory, 1 on "
                   "local_disk.",
                   "2"),
  };
  return table;
}

const Fields<RestartSpec>& restart_fields() {
  using R = RestartSpec;
  static const Fields<R> table{
      required(word_field("kind", &R::kind,
                          "full: all processes start again; in_place: healthy processes stay; "
                          "warm_spare: a node that stands by takes the place; elastic: the rest "
                          "goes on with fewer data-parallel workers.",
                          "elastic")),
      number_field("spares", &R::spares, whole(1, kMostNodes),
                   "Of warm_spare: nodes of the workers' pools that stand by, billed; default: "
                   "all that the job does not need.",
                   "1"),
      number_field("min", &R::min, whole(1, kMostNodes),
                   "Of elastic: fewest nodes that the job trains on; default: half of them.", "12"),
      word_field("batch", &R::batch,
                 "Of elastic: samples of a step of the smaller job: as many by accumulation "
                 "(fixed, the default), or fewer (scaled).",
                 "fixed"),
  };
  return table;
}

void check_restart(Reader& reader, const YamlNode& node, const RestartSpec& restart) {
  const auto only = [&](std::string_view key, RestartKind kind) {
    const auto* entry = node.find(key);
    if (entry == nullptr || restart.kind == kind) return;
    reader.error(entry->key_at,
                 fmt::format("'{}' does not belong to kind {}", key, to_text(restart.kind)),
                 fmt::format("it belongs to {}", to_text(kind)));
  };
  only("spares", RestartKind::warm_spare);
  only("min", RestartKind::elastic);
  only("batch", RestartKind::elastic);
}

const Fields<CheckpointSpec>& checkpoint_fields() {
  using C = CheckpointSpec;
  static const Fields<C> table{
      field<C>(
          "interval",
          Form{.kind = Form::Kind::choice,
               .words = {"optimal", "none"},
               .note = "a duration, optimal, or none",
               .item = Form::Kind::duration},
          [](Reader& r, const YamlNode& n, C& c) {
            if (n.kind == YamlNode::Kind::scalar && (n.text == "optimal" || n.text == "none")) {
              c.mode = n.text == "none" ? C::Mode::none : C::Mode::optimal;
            } else if (const auto v = r.number(n, duration_above_zero())) {
              c.mode = C::Mode::interval;
              c.interval = Seconds{*v};
            }
          },
          "Time of useful work between two checkpoints; optimal (default): Young/Daly's; none: "
          "none are saved.",
          "10min"),
      text_field("storage", &C::storage,
                 "Where they go: a catalog name; default: the provider's object store.",
                 "gcs-standard"),
      word_field("on_notice", &C::on_notice,
                 "What the program does when its node is about to be taken: save a checkpoint, or "
                 "none. Default: save for reckon's own worker, none for a container.",
                 "none"),
      word_field("mode", &C::save_mode,
                 "Training stands still until a checkpoint is written (blocking, the default), or "
                 "only while it is copied to the host's memory (async).",
                 "async"),
      block_field<local_checkpoint_fields>(
          "local", &C::local, {},
          "More frequent checkpoints on the nodes themselves; the storage then has those of "
          "interval.",
          "{to: peer_memory, every: 1min}"),
  };
  return table;
}

struct Evaluation {
  double every_epochs = 0;
};
const Fields<Evaluation>& evaluation_fields() {
  static const Fields<Evaluation> table{required(number_field(
      "every_epochs", &Evaluation::every_epochs, Form{Form::Kind::number, 1e-6, kMostEpochs},
      "Epochs between two passes over the validation set.", "4"))};
  return table;
}

Field<WorkloadSpec> train_field() {
  Form form{Form::Kind::block};
  form.fields = &infos_of<train_fields>;
  return field<WorkloadSpec>(
      "train", form,
      [](Reader& r, const YamlNode& n, WorkloadSpec& w) {
        TrainKeys keys;
        const std::size_t before = r.errors();
        if (!read_fields(r, n, train_fields(), keys)) return;
        check_one_of(r, n, kLengths, r.errors() == before ? 1 : 0);
        if (!keys.starts_from.empty() && keys.length.unit != Unit::to_accuracy)
          r.error("starts_from is for to_accuracy only: other lengths are as long from anywhere",
                  "leave starts_from out");
        if (keys.sequence_length) w.sequence_length = keys.sequence_length;
        w.train = keys.length;
        w.train->starts_from = std::move(keys.starts_from);
      },
      "How long to train: exactly one of epochs, samples, steps, tokens, to_accuracy.",
      "{epochs: 90}");
}

Field<WorkloadSpec> dataset_field() {
  Form form = choice("a catalog name, or a map");
  form.item = Form::Kind::text;
  form.fields = &infos_of<dataset_fields>;
  return field<WorkloadSpec>(
      "dataset", form,
      [](Reader& r, const YamlNode& n, WorkloadSpec& w) {
        if (n.kind == YamlNode::Kind::map) {
          DatasetInline value;
          if (read_fields(r, n, dataset_fields(), value)) w.dataset = value;
        } else if (auto name = r.text(n)) {
          w.dataset = DatasetByName{std::move(*name)};
        }
      },
      "What to train on: a catalog name or its size.", "imagenet");
}

}  // namespace

const Fields<WorkloadSpec>& workload_fields() {
  using W = WorkloadSpec;
  Form model = choice("a catalog name, or a map with one of huggingface, transformer, layers");
  model.item = Form::Kind::text;
  model.fields = &model_infos;
  static const Fields<W> table{
      field<W>(
          "model", model, [](Reader& r, const YamlNode& n, W& w) { w.model = read_model(r, n); },
          "The network: a catalog name or its description.", "resnet50_v1_5"),
      block_field<finetune_fields>("finetune", &W::finetune, check_finetune,
                                   "Absent: full training.", "{method: lora, rank: 16}"),
      dataset_field(),
      number_field("sequence_length", &W::sequence_length, sequence_length_form(),
                   "Tokens of one sample; default: the model's own.", "1024"),
      train_field(),
      word_field("precision", &W::precision, "What the multiplications run in.", "bf16"),
      boolean_field("fp32_gradients", &W::fp32_gradients,
                    "Gradients are kept, summed and reduced in fp32 whatever the precision "
                    "(Megatron-LM's bf16).",
                    "true"),
      optimizer_field(),
      data_field(),
      number_field("batch_per_accelerator", &W::batch_per_accelerator, whole(1, kMostBatch),
                   "Samples of one accelerator in one step.", "64"),
      number_field("global_batch", &W::global_batch, whole(1, kMostBatch),
                   "Samples of one step, all workers.", "1024"),
      number_field("zipf_exponent", &W::zipf_exponent, Form{Form::Kind::number, 0, 10},
                   "Skew of the ids that embedding tables are asked for: id k is drawn as often as "
                   "1 / (k + 1)^s; 0: all alike.",
                   "1.05"),
      field<W>(
          "evaluation", Form{.kind = Form::Kind::block, .fields = &infos_of<evaluation_fields>},
          [](Reader& r, const YamlNode& n, W& w) {
            Evaluation value;
            const std::size_t before = r.errors();
            if (read_fields(r, n, evaluation_fields(), value) && r.errors() == before)
              w.evaluate_every_epochs = value.every_epochs;
          },
          "Passes over the validation set; absent: none.", "{every_epochs: 4}"),
      text_field("stack", &W::stack,
                 "Software stack whose measured efficiencies apply; default: any.", "xla"),
      block_field<strategy_fields>("strategy", &W::strategy, check_strategy,
                                   "How the work is spread; default: kind single.",
                                   "{kind: mirrored}"),
      block_field<checkpoint_fields>("checkpoint", &W::checkpoint, {},
                                     "When and where the state is saved.", "{interval: 10min}"),
      block_field<restart_fields>("restart", &W::restart, check_restart,
                                  "How the job goes on when a node or a process is lost; default: "
                                  "kind full.",
                                  "{kind: elastic, min: 12}"),
      block_field<container_fields>("container", &W::container, {}, "A program of your own.",
                                    "{image: registry.example.com/train:1.4}"),
      field<W>(
          "profile", Form{.kind = Form::Kind::block, .fields = &infos_of<step_time_fields>},
          [](Reader& r, const YamlNode& n, W& w) {
            StepTime value;
            if (read_fields(r, n, step_time_fields(), value)) w.profiled_step = value.step;
          },
          "A step that was measured on the cluster of this file; the model scales it.",
          "{step: 210ms}"),
  };
  return table;
}

void check_workload(Reader& reader, const YamlNode& node, const WorkloadSpec& workload) {
  constexpr std::array<std::string_view, 2> kPrograms{"model", "container"};
  constexpr std::array<std::string_view, 2> kBatches{"batch_per_accelerator", "global_batch"};
  // Of a program of one's own the model beside it says what it trains, or scales a measured step.
  const bool measured =
      workload.container && std::holds_alternative<Seconds>(workload.container->profile);
  const bool is_model = node.has("model");
  if (!is_model || !workload.container) check_one_of(reader, node, kPrograms, 1);
  if (is_model && workload.container &&
      std::holds_alternative<std::string>(workload.container->profile))
    reader.error(node.find("model")->key_at, "the model is given twice",
                 "once, here or in workload.container.profile");
  if (const auto* profile = node.find("profile"))
    if (!is_model || measured)
      reader.error(profile->key_at,
                   measured ? "the measured step is given twice"
                            : "a measured step needs the 'model' that scales it",
                   measured ? "once, here or in workload.container"
                            : "example: model: llama3_8b, beside profile: {step: 210ms}");
  check_one_of(reader, node, kBatches, is_model ? 1 : 0);
  if (is_model && !node.has("train") && !reader.misspelt("train"))
    reader.error(fmt::format("{} needs 'train'", reader.subject()),
                 "how long to train\nexample: train: {epochs: 90}");
  if (const auto* train = node.find("train"); train != nullptr && node.has("sequence_length"))
    if (const auto* again = train->value.find("sequence_length"))
      reader.error(again->key_at, "sequence_length is given twice",
                   "once in workload or once in workload.train");
  const bool by_epochs = workload.train && workload.train->unit == Unit::epochs;
  const auto* train = node.find("train");
  if (by_epochs && train->value.has("epochs") && !node.has("dataset") &&
      !reader.misspelt("dataset") && is_model)
    reader.error(
        train->value.find("epochs")->key_at, "epochs need a dataset to go over",
        "example: dataset: imagenet, or dataset: {samples: 1281167, bytes_per_sample: 110kB}");
}

}  // namespace reckon
