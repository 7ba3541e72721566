#include "executor/kubernetes/pods/image_fit.h"

#include <catch2/catch.hpp>

using namespace reckon;
using namespace reckon::kubernetes;

TEST_CASE("names of images are told from what no runtime takes") {
  const std::string digest(64, 'a');
  for (const std::string& good : std::vector<std::string>{
           "worker", "reckon-worker:latest", "localhost/reckon-worker:1",
           "LOCAL.host:5000/a/b_c:V1.2", "gcr.io/p-1/train__x@sha256:" + digest,
           "host:443/a.b/c--d:1@sha256:" + digest}) {
    INFO(good);
    CHECK(image_name_mistake(good).empty());
  }
  CHECK(image_name_mistake("localhost/NOT/x:1") == "'NOT/x' has capital letters");
  CHECK(image_name_mistake("a/b:") == "'' is no tag");
  CHECK(image_name_mistake("a/b:-1") == "'-1' is no tag");
  CHECK(image_name_mistake("a//b") == "'a//b' is no path");
  CHECK(image_name_mistake("a b") == "'a b' is no path");
  CHECK(image_name_mistake("") == "'' is no path");
  CHECK(image_name_mistake("a@sha256:12") == "behind '@' comes no digest");
  CHECK(image_name_mistake("ho_st.x/a") == "'ho_st.x' is no host");
}

TEST_CASE("the CUDA that an image needs is read from its name where people write it") {
  const auto text = [](const std::string& image) -> std::string {
    const auto version = cuda_of(image);
    if (!version) return "none";
    return std::to_string(version->major) +
           (version->minor ? '.' + std::to_string(*version->minor) : "");
  };
  CHECK(text("nvcr.io/nvidia/cuda:12.4.1-runtime-ubuntu22.04") == "12.4");
  CHECK(text("pytorch/pytorch:2.3.0-cuda11.8-cudnn8-runtime") == "11.8");
  CHECK(text("train:torch2.4-cu121") == "12.1");
  CHECK(text("host/train-cuda-13:7") == "13");
  CHECK(text("host/train:1.4") == "none");
  CHECK(text("host/acute125:1") == "none");
}
