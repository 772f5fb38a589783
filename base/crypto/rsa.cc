#include "base/crypto/rsa.h"

#include <openssl/evp.h>
#include <openssl/pem.h>

#include <memory>

namespace tune {

Result<std::string> sign_rs256(const std::string& pem, const std::string& text) {
    const std::unique_ptr<BIO, decltype(&BIO_free)> memory(
        BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())), &BIO_free);
    const std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)> key(
        PEM_read_bio_PrivateKey(memory.get(), nullptr, nullptr, nullptr), &EVP_PKEY_free);
    if (!key) return invalid_parameter("it is no private key in PEM form");
    const std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context(EVP_MD_CTX_new(),
                                                                          &EVP_MD_CTX_free);
    std::size_t bytes = 0;
    const auto* const data = reinterpret_cast<const unsigned char*>(text.data());
    if (EVP_DigestSignInit(context.get(), nullptr, EVP_sha256(), nullptr, key.get()) != 1 ||
        EVP_DigestSign(context.get(), nullptr, &bytes, data, text.size()) != 1)
        return invalid_parameter("nothing can be signed with this key");
    std::string signature(bytes, '\0');
    if (EVP_DigestSign(context.get(), reinterpret_cast<unsigned char*>(signature.data()), &bytes,
                       data, text.size()) != 1)
        return invalid_parameter("nothing can be signed with this key");
    signature.resize(bytes);
    return signature;
}

}  // namespace tune
