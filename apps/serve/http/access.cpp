#include "apps/serve/http/access.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "apps/cli/text.h"
#include "apps/serve/api/api_error.h"
#include "braid/tensor/error.h"
#include "braid/tensor/io/path_status.h"
#include "braid/tensor/io/reader.h"

namespace braid::apps::serve {

std::string lower(std::string_view text) {
  std::string result(text);
  for (char& c : result)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return result;
}

namespace {

// The name of "name:port" or "[::1]:port" without port and brackets; "" where it has another form.
std::string host_name(std::string_view host) {
  const size_t colon = host.starts_with('[') ? host.find("]:") : host.find(':');
  std::string_view name = host, port;
  if (colon != std::string_view::npos) {
    const size_t at = host.starts_with('[') ? colon + 1 : colon;
    name = host.substr(0, at), port = host.substr(at + 1);
    if (port.empty() || port.find_first_not_of("0123456789") != std::string_view::npos) return "";
  }
  if (name.starts_with('[')) {
    if (!name.ends_with(']')) return "";
    name = name.substr(1, name.size() - 2);
  }
  return lower(name);
}

}  // namespace

std::vector<std::string_view> RequestHead::all(std::string_view name) const {
  std::vector<std::string_view> values;
  for (const auto& [field, value] : fields)
    if (field == name) values.push_back(value);
  return values;
}

bool is_loopback(std::string_view address) { return address.starts_with("127.") || address == "::1"; }

void check_host(const Access& access, const RequestHead& head, std::string_view address) {
  const auto hosts = head.all("host");
  if (hosts.size() > 1 || (hosts.empty() && head.version_1_1))
    throw ApiError(400, str("expected one field Host, found ", hosts.size()));
  const std::string_view host = !head.authority.empty() ? head.authority : hosts.empty() ? "" : hosts[0];
  const std::string name = host.empty() && hosts.empty() ? std::string(address) : host_name(host);
  const bool known = !name.empty() && (name == "localhost" || name == "127.0.0.1" || name == "::1" || name == address ||
                                       std::ranges::count(access.hosts, name) > 0);
  if (!known)
    throw ApiError(403, "the field Host names another server; other names than this machine's need --allow-host NAME",
                   "", "foreign_host");
  const auto origins = head.all("origin");
  if (origins.empty() || !allowed_origin(access, head).empty()) return;
  const std::string origin = origins.size() == 1 ? lower(origins[0]) : "";
  const std::string own = lower(host);
  if (own.empty() || (origin != "http://" + own && origin != "https://" + own))
    throw ApiError(403, "a page of another origin sent this request; pages of other servers need --allow-origin URL",
                   "", "foreign_origin");
}

std::string allowed_origin(const Access& access, const RequestHead& head) {
  const auto given = head.all("origin");
  if (given.size() != 1) return "";
  const std::string origin = origin_of(given[0]);
  return !origin.empty() && std::ranges::count(access.origins, origin) > 0 ? std::string(given[0]) : "";
}

std::string origin_of(std::string_view url) {
  std::string text = lower(url);
  if (text.ends_with('/')) text.pop_back();
  const bool tls = text.starts_with("https://");
  const size_t begin = tls ? 8 : 7;
  if ((!tls && !text.starts_with("http://")) || text.find_first_of("/?#@ *", begin) != std::string::npos) return "";
  if (host_name(std::string_view(text).substr(begin)).empty()) return "";
  const std::string_view standard = tls ? ":443" : ":80";
  if (text.ends_with(standard)) text.resize(text.size() - standard.size());
  return text;
}

void check_key(const Access& access, const RequestHead& head) {
  if (access.key.empty()) return;
  const auto given = head.all("authorization");
  const std::string expected = "Bearer " + access.key;
  const std::string_view value = given.size() == 1 ? given[0] : std::string_view();
  unsigned difference = value.size() == expected.size() ? 0 : 1;
  for (size_t i = 0; i < expected.size(); ++i) {
    const auto other = i < value.size() ? static_cast<unsigned char>(value[i]) : 0U;
    difference |= static_cast<unsigned char>(expected[i]) ^ other;
  }
  if (difference != 0)
    throw ApiError(401, "this server needs its key: expected one field Authorization with Bearer and the key", "",
                   "invalid_api_key");
}

std::string read_key_file(const std::string& file) {
  const auto found = io::path_status(file);
  check(found && S_ISREG(found->st_mode), ErrorKind::setting,
        [&] { return "cannot read the key in " + file + ": expected a file"; });
  // systemd names the readers of a credential in an access control list, whose mask stands in the bits of the group.
  const char* credentials = std::getenv("CREDENTIALS_DIRECTORY");
  const bool credential = credentials && *credentials && std::filesystem::path(file).parent_path() == credentials;
  const mode_t others = credential ? S_IWGRP | S_IXGRP | S_IRWXO : S_IRWXG | S_IRWXO;
  check((found->st_mode & others) == 0, ErrorKind::setting, [&] {
    return "others may use the key file " + file + ": expected a file of its owner alone; run chmod 600 " +
           shell_quote(file);
  });
  const std::string text = io::read_text_file(file, 4096);
  const std::string key(trim(text));
  const bool printable = std::ranges::all_of(key, [](char c) { return c > ' ' && c < 127; });
  check(!key.empty() && printable, ErrorKind::setting,
        [&] { return "bad key in " + file + ": expected one line of printable characters without spaces"; });
  return key;
}

}  // namespace braid::apps::serve
