#include "executor/data/data_files.h"

using namespace reckon;
using namespace reckon::test;

namespace {

/// As tests/data/samples/make.py has them.
float token(std::int64_t k) { return static_cast<float>(k * 7 % 50); }

/// A corpus as Megatron-LM's IndexedDatasetBuilder writes it: sequences of these lengths.
struct Corpus {
  int code = 8;
  std::vector<std::int32_t> lengths{5, 1, 4};
  std::vector<std::int64_t> documents{0, 2, 3};
  std::int64_t bytes_each = 2;

  std::string idx() const {
    std::string text = std::string("MMIDIDX\0\0", 9) + little(std::uint64_t{1}) +
                       static_cast<char>(code) + little(std::uint64_t{lengths.size()}) +
                       little(std::uint64_t{documents.size()});
    for (const std::int32_t length : lengths) text += little(length);
    std::int64_t place = 0;
    for (const std::int32_t length : lengths) {
      text += little(place);
      place += length * bytes_each;
    }
    for (const std::int64_t document : documents) text += little(document);
    return text;
  }
  std::string bin() const {
    std::int64_t count = 0;
    for (const std::int32_t length : lengths) count += length;
    std::string text;
    for (std::int64_t k = 0; k < count; ++k)
      text += little(static_cast<std::uint64_t>(token(k)))
                  .substr(0, static_cast<std::size_t>(bytes_each));
    return text;
  }
};

}  // namespace

TEST_CASE("arrays that NumPy saved are windows of tokens, whatever their type") {
  const ModelGraph model = language_model(50, 4);
  for (const char* name : {"tokens-u2.npy", "tokens-i4.npy", "tokens-i8.npy"}) {
    INFO(name);
    const auto source = opened(
        spec_of(DataFormat::numpy, std::string(RECKON_SOURCE_DIR "/tests/data/samples/") + name),
        model);
    CHECK(source->samples() == 9);  // 37 tokens: 9 times 4, and the next of the last
    const Sample third = read(*source, model, 2);
    CHECK(third.input == std::vector<float>{token(8), token(9), token(10), token(11)});
    CHECK(third.target == std::vector<float>{token(9), token(10), token(11), token(12)});
    CHECK(read(*source, model, 8).target.back() == token(36));
    CHECK(source->work()->samples == 2);
  }
}

TEST_CASE("arrays that are no tokens, and damaged headers of NumPy, are refused") {
  const ModelGraph model = language_model(50, 4);
  const auto of_file = [&](const std::string& name) {
    return complaint(
        spec_of(DataFormat::numpy, std::string(RECKON_SOURCE_DIR "/tests/data/samples/") + name),
        model);
  };
  check_says(of_file("two-dimensions.npy"), {"array of 2 dimensions", "reshape(-1)"});
  check_says(of_file("big-endian.npy"), {"type '>u2'", "astype('<u4')"});
  check_says(of_file("floats.npy"), {"type '<f4'"});
  check_says(of_file("photo.png"), {"photo.png: at byte 0: is no .npy file"});
  const Folder folder("npy-bad");
  const auto said = [&](const std::string& bytes) {
    folder.write("x.npy", bytes);
    return complaint(spec_of(DataFormat::numpy, folder.path / "x.npy"), model);
  };
  const std::string good = stored("tokens-u2.npy");
  CHECK(said(good).empty());
  check_says(said(good.substr(0, good.size() - 2)),
             {"x.npy: at byte 128: the header says 37 tokens of 2 bytes, 72 bytes follow"});
  check_says(said(good + "x"), {"75 bytes follow"});
  check_says(said(good.substr(0, 60)), {"x.npy: at byte 60: ends, 68 bytes too early"});
  std::string version = good;
  version[6] = 9;
  check_says(said(version), {"at byte 6: version 9.0 of the .npy format"});
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string text = good;
    text.replace(text.find(from), from.size(), to);
    const std::size_t end = text.find('\n');
    const std::ptrdiff_t longer = std::ssize(text) - std::ssize(good);
    if (longer > 0) text.erase(end - static_cast<std::size_t>(longer), std::size_t(longer));
    if (longer < 0) text.insert(end, std::size_t(-longer), ' ');
    return said(text);
  };
  check_says(with("'descr'", "'DESCR'"), {"at byte 10: the header has an unknown key 'DESCR'"});
  check_says(with("(37,)", "(-7,)"), {"no tuple of lengths"});
  check_says(with("(37,)", "37   "), {"a 'shape' that is no tuple"});
  check_says(with("False", "Maybe"), {"neither True nor False"});
  check_says(with("'<u2'", "[('a', '<u2')]"), {"holds records, not numbers"});
  check_says(with("(37,)", "(99999999999999999,)"), {"the header says 99999999999999999 tokens"});
  check_says(with("{", "["), {"is no dictionary"});
  // One token out of the model's vocabulary.
  std::string token_50 = good;
  token_50[128 + 2 * 6] = 50;
  check_says(said(token_50), {"x.npy: at byte 140: token 50, the model's vocabulary has 50"});
  check_says(complaint(spec_of(DataFormat::numpy, folder.path / "x.npy"), language_model(50, 37)),
             {"holds 37 tokens, one sample of the model takes 37 and the next"});
  check_says(complaint(spec_of(DataFormat::numpy, folder.path / "x.npy"), classifier({3, 4, 4}, 2)),
             {"the model does not predict the next token"});
  check_says(complaint(spec_of(DataFormat::numpy, folder.path), model), {"one is expected"});
}

TEST_CASE("Megatron's corpora: documents back to back, in every type of whole numbers") {
  const Folder folder("megatron");
  const ModelGraph model = language_model(50, 3);
  struct Type {
    int code;
    std::int64_t bytes;
  };
  for (const Type type : {Type{1, 1}, {2, 1}, {3, 2}, {4, 4}, {5, 8}, {8, 2}}) {
    INFO(type.code);
    const Corpus corpus{.code = type.code, .bytes_each = type.bytes};
    folder.write("text_document.idx", corpus.idx());
    folder.write("text_document.bin", corpus.bin());
    for (const char* name : {"text_document", "text_document.bin", "text_document.idx"}) {
      const auto source = opened(spec_of(DataFormat::megatron, folder.path / name), model);
      CHECK(source->samples() == 3);  // 10 tokens
      const Sample second = read(*source, model, 1);
      CHECK(second.input == std::vector<float>{token(3), token(4), token(5)});
      CHECK(second.target == std::vector<float>{token(4), token(5), token(6)});
    }
  }
  // Modes of sequences, one byte each, as multimodal corpora have them.
  const Corpus corpus;
  folder.write("text_document.idx", corpus.idx() + std::string(3, '\0'));
  CHECK(opened(spec_of(DataFormat::megatron, folder.path / "text_document"), model)->samples() ==
        3);
}

TEST_CASE("an index of Megatron that contradicts itself or its tokens is refused at the byte") {
  const Folder folder("megatron-bad");
  const ModelGraph model = language_model(50, 3);
  const Corpus good;
  folder.write("x.bin", good.bin());
  const DataSpec spec = spec_of(DataFormat::megatron, folder.path / "x");
  check_says(complaint(spec, model), {"x.idx: there is no such file"});
  const auto said = [&](const std::string& idx) {
    folder.write("x.idx", idx);
    return complaint(spec, model);
  };
  const auto changed = [&](std::size_t at, char to) {
    std::string idx = good.idx();
    idx[at] = to;
    return said(idx);
  };
  CHECK(said(good.idx()).empty());
  check_says(changed(0, 'X'), {"x.idx: at byte 0: is no index of Megatron"});
  check_says(changed(9, 2), {"x.idx: at byte 9: version 2, 1 is read"});
  check_says(changed(17, 7), {"x.idx: at byte 17: type 7 of tokens"});
  check_says(changed(18, 4), {"x.idx: at byte 18: 4 sequences and 3 places of documents"});
  check_says(changed(25, 127), {"x.idx: at byte 18: "});
  check_says(changed(34, 6), {"x.idx: at byte 54: sequence 1 begins at byte 10", "stands byte 12"});
  check_says(changed(37, '\x80'), {"x.idx: at byte 34: sequence 0 has -"});
  const std::size_t documents = 34 + 3 * 12;
  check_says(changed(documents, 1), {"x.idx: at byte 70: document 0 begins with sequence 1"});
  check_says(changed(documents + 8, 9), {"x.idx: at byte 78: document 1 begins with sequence 9"});
  check_says(changed(documents + 16, 2), {"x.idx: at byte 86: document 2 begins with sequence 2"});
  check_says(said(good.idx().substr(0, 90)), {"at byte 18", "which 56 bytes do not hold"});
  check_says(said(good.idx().substr(0, 20)), {"at byte 20: ends"});
  CHECK(said(good.idx()).empty());
  folder.write("x.bin", good.bin().substr(0, 18));
  check_says(complaint(spec, model), {"x.bin: has 18 bytes", "says 10 tokens of 2 bytes"});
}
