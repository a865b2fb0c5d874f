// For BOOST_CHECK_EXCEPTION: an ApiError of this status and field whose words are there, and none of the client's.
#pragma once
#include <boost/test/unit_test.hpp>
#include <string>

#include "apps/serve/api/api_error.h"

namespace braid::test {

// param: how the field's name begins.
inline auto rejects(int status, std::string param, std::string words) {
  return [=](const apps::serve::ApiError& error) {
    const std::string body = error.body();
    const bool ok = error.status() == status && error.param().starts_with(param) &&
                    (!param.empty() || error.param().empty()) && body.find(words) != std::string::npos &&
                    body.find("MARKER") == std::string::npos;
    if (!ok) BOOST_TEST_MESSAGE("status " << error.status() << " param '" << error.param() << "' " << body);
    return ok;
  };
}

}  // namespace braid::test
