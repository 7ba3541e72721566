#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

// The few cryptographic functions that the processes of a job need, by OpenSSL's libcrypto.
struct evp_cipher_ctx_st;

namespace reckon {

using Key = std::array<std::byte, 32>;
using Nonce = std::array<std::byte, 32>;  // a number that is used once
using Digest = std::array<std::byte, 32>;
using Tag = std::array<std::byte, 16>;

/// From the system's generator, getrandom(2). Throws std::runtime_error where it has none.
void fill_randomly(std::span<std::byte> bytes);
Nonce random_nonce();

/// HMAC-SHA256 [RFC 2104, FIPS 180-4].
Digest hmac_sha256(const Key& key, std::span<const std::byte> message);

/// In a time that says nothing about where they differ. Of the same size.
bool same_bytes(std::span<const std::byte> a, std::span<const std::byte> b);

/// AES-256-GMAC [NIST SP 800-38D]: tags of messages under one key. No two messages of a key may
/// have the same number and part.
class Gmac {
 public:
  explicit Gmac(const Key& key);
  Tag tag(std::uint64_t number, std::uint32_t part, std::span<const std::byte> message);

 private:
  struct Free {
    void operator()(evp_cipher_ctx_st* context) const;
  };
  std::unique_ptr<evp_cipher_ctx_st, Free> context_;
};

}  // namespace reckon
