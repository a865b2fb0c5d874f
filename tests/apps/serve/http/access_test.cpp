#include "apps/serve/http/access.h"

#include <sys/stat.h>

#include <boost/test/unit_test.hpp>

#include "tests/apps/serve/rejects.h"
#include "tests/apps/support.h"
#include "tests/support/throws.h"

using namespace braid;
using namespace braid::apps::serve;

BOOST_AUTO_TEST_SUITE(serve_access)

using test::rejects;
using Fields = std::vector<std::pair<std::string, std::string>>;

namespace {

RequestHead head(Fields fields) { return {.method = "GET", .target = "/", .fields = std::move(fields)}; }

}  // namespace

BOOST_AUTO_TEST_CASE(hosts_of_this_machine_and_those_that_are_allowed) {
  const Access access{.hosts = {"models.example"}};
  const auto check = [&](const std::string& host) { check_host(access, head({{"host", host}}), "192.0.2.7"); };
  for (const char* host : {"localhost", "localhost:8000", "LOCALHOST:1", "127.0.0.1:8000", "[::1]:8000", "[::1]",
                           "192.0.2.7:8000", "models.example", "Models.Example:443"})
    BOOST_CHECK_NO_THROW(check(host));
  for (const char* host :
       {"", "MARKER.example", "localhost.evil.example", "evil.example:8000", "127.0.0.1.evil.example", "192.0.2.8",
        "localhost:", "localhost:80:80", "localhost:8x", "[::1", "models.example.", "user@localhost", "localhost/x"})
    BOOST_TEST_CONTEXT(host) BOOST_CHECK_EXCEPTION(check(host), ApiError, rejects(403, "", "names another server"));
  BOOST_CHECK_EXCEPTION(check_host(access, head({}), "127.0.0.1"), ApiError,
                        rejects(400, "", "expected one field Host"));
  BOOST_CHECK_EXCEPTION(check_host(access, head({{"host", "localhost"}, {"host", "localhost"}}), "127.0.0.1"), ApiError,
                        rejects(400, "", "found 2"));
  RequestHead old = head({});
  old.version_1_1 = false;
  BOOST_CHECK_NO_THROW(check_host(access, old, "127.0.0.1"));
}

BOOST_AUTO_TEST_CASE(pages_of_other_origins_are_not_served) {
  const auto check = [](const std::string& origin) {
    check_host({}, head({{"host", "localhost:8000"}, {"origin", origin}}), "127.0.0.1");
  };
  BOOST_CHECK_NO_THROW(check("http://localhost:8000"));
  BOOST_CHECK_NO_THROW(
      check("https://"
            "LOCALHOST:8000"));
  for (const char* origin : {"null", "", "http://localhost:3000", "http://localhost", "http://127.0.0.1:8000",
                             "http://MARKER.example", "http://localhost:8000.evil.example", "localhost:8000"})
    BOOST_TEST_CONTEXT(origin) BOOST_CHECK_EXCEPTION(check(origin), ApiError, rejects(403, "", "another origin"));
  BOOST_CHECK_EXCEPTION(
      check_host({}, head({{"host", "localhost"}, {"origin", "http://localhost"}, {"origin", "null"}}), ""), ApiError,
      rejects(403, "", "another origin"));
}

BOOST_AUTO_TEST_CASE(origins_are_written_in_one_way) {
  const std::string http = "http:", https = "https:", page = http + "//page.example";
  BOOST_TEST(origin_of("http://localhost:3000") == "http://localhost:3000");
  BOOST_TEST(origin_of("HTTP:" + std::string("//Page.Example:80/")) == page);
  BOOST_TEST(origin_of(https + "//page.example:443") == https + "//page.example");
  BOOST_TEST(origin_of(https + "//[::1]:80") == https + "//[::1]:80");
  for (const std::string& text : {std::string(), std::string("*"), std::string("null"), http + "//", page + "/path",
                                  page + "?y", "ftp:" + page.substr(5), http + "//user@x", http + "//x:port",
                                  http + "//*.example", http + "//a b", std::string("localhost:3000")})
    BOOST_TEST(origin_of(text) == "", text);
  const Access access{.origins = {page}};
  BOOST_CHECK_NO_THROW(check_host(access, head({{"host", "localhost"}, {"origin", page}}), "127.0.0.1"));
  BOOST_TEST(allowed_origin(access, head({{"origin", page}})) == page);
  BOOST_TEST(allowed_origin(access, head({{"origin", page}, {"origin", page}})) == "");
  BOOST_TEST(allowed_origin({}, head({{"origin", page}})) == "");
}

BOOST_AUTO_TEST_CASE(the_key_and_nothing_like_it) {
  const Access access{.key = "MARKER-key"};
  BOOST_CHECK_NO_THROW(check_key(access, head({{"authorization", "Bearer MARKER-key"}})));
  BOOST_CHECK_NO_THROW(check_key({}, head({{"authorization", "Bearer "}})));
  const Fields given[] = {{},
                          {{"authorization", ""}},
                          {{"authorization", "Bearer "}},
                          {{"authorization", "Bearer MARKER-ke"}},
                          {{"authorization", "Bearer MARKER-keys"}},
                          {{"authorization", "Bearer MARKER-keY"}},
                          {{"authorization", "bearer MARKER-key"}},
                          {{"authorization", "MARKER-key"}},
                          {{"authorization", "Bearer MARKER-keyBearer MARKER-key"}},
                          {{"authorization", "Bearer MARKER-key"}, {"authorization", "Bearer MARKER-key"}}};
  for (const Fields& fields : given)
    BOOST_CHECK_EXCEPTION(check_key(access, head(fields)), ApiError, rejects(401, "", "needs its key"));
}

BOOST_AUTO_TEST_CASE(key_files_are_of_their_owner_alone) {
  const test::Scratch scratch;
  const std::string file = (scratch / "key").string();
  const auto with = [&](const std::string& text, mode_t mode) {
    test::write(file, text);
    ::chmod(file.c_str(), mode);
    return read_key_file(file);
  };
  BOOST_TEST(with("secret-1\n", 0600) == "secret-1");
  BOOST_TEST(with("secret-1", 0400) == "secret-1");
  for (const mode_t mode : {0640, 0604, 0620, 0644, 0611})
    BRAID_CHECK_FAILS(with("secret", mode), ErrorKind::setting, "others may use the key file");
  // A credential of systemd has its readers in an access control list.
  ::setenv("CREDENTIALS_DIRECTORY", scratch.path.c_str(), 1);
  BOOST_TEST(with("secret-1", 0440) == "secret-1");
  for (const mode_t mode : {0460, 0450, 0444, 0404})
    BRAID_CHECK_FAILS(with("secret", mode), ErrorKind::setting, "others may use the key file");
  ::setenv("CREDENTIALS_DIRECTORY", "/another", 1);
  BRAID_CHECK_FAILS(with("secret", 0440), ErrorKind::setting, "others may use the key file");
  ::unsetenv("CREDENTIALS_DIRECTORY");
  for (const char* text : {"", "\n", "two words\n", "two\nlines", "\x01", "\xc3\xa9"})
    BRAID_CHECK_FAILS(with(text, 0600), ErrorKind::setting, "bad key in");
  BRAID_CHECK_FAILS(read_key_file((scratch / "none").string()), ErrorKind::setting, "cannot read the key");
  BRAID_CHECK_FAILS(read_key_file(scratch.path.string()), ErrorKind::setting, "cannot read the key");
}

BOOST_AUTO_TEST_CASE(loopback) {
  for (const char* address : {"127.0.0.1", "127.1.2.3", "::1"}) BOOST_TEST(is_loopback(address));
  for (const char* address : {"0.0.0.0", "::", "192.0.2.7", "1.127.0.1", ""}) BOOST_TEST(!is_loopback(address));
}

BOOST_AUTO_TEST_SUITE_END()
