// JSON in the terms of a grammar: RFC 8259, with bounds on white space and on the digits of numbers.
#include "braid/models/inference/constraint/grammar.h"

namespace braid::models {

void GrammarWriter::white_space() {
  call(shared("white space", [&] {
    const uint32_t indent = shared("indent", [&] { bytes(any_byte_of(" \t")); });
    optional([&] {
      either({[&] { text(" "); },
              [&] {
                text("\n");
                repeat(indent, 0, 32);
              }});
    });
  }));
}

void GrammarWriter::digits(uint32_t min, uint32_t max) {
  repeat(shared("digit", [&] { bytes(byte_range('0', '9')); }), min, max);
}

void GrammarWriter::json_number() {
  call(shared("number", [&] {
    optional([&] { text("-"); });
    either({[&] { text("0"); },
            [&] {
              bytes(byte_range('1', '9'));
              digits(0, 19);
            }});
    optional([&] {
      text(".");
      digits(1, 20);
    });
    optional([&] {
      bytes(any_byte_of("eE"));
      optional([&] { bytes(any_byte_of("+-")); });
      digits(1, 2);
    });
  }));
}

void GrammarWriter::raw_character() {
  ByteSet plain = byte_range(0x20, 0x7F);
  plain.reset('"').reset('\\');
  either(std::size(kUtf8Rows) + 1, [&](size_t i) {
    if (i == std::size(kUtf8Rows)) return bytes(plain);
    const Utf8Row& row = kUtf8Rows[i];
    bytes(byte_range(row.first_low, row.first_high));
    bytes(byte_range(row.second_low, row.second_high));
    for (int k = 0; k < row.others; ++k) bytes(byte_range(0x80, 0xBF));
  });
}

uint32_t GrammarWriter::characters() {
  return shared("raw character", [&] { raw_character(); });
}

void GrammarWriter::escape() {
  const std::string_view hex = "0123456789abcdefABCDEF";
  const auto hex_digits = [&](int n) {
    for (int i = 0; i < n; ++i) bytes(any_byte_of(hex));
  };
  text("\\");
  either({[&] { bytes(any_byte_of("\"\\/bfnrt")); },
          [&] {
            text("u");
            either({[&] {
                      bytes(any_byte_of("0123456789abcefABCEF"));
                      hex_digits(3);
                    },
                    [&] {
                      bytes(any_byte_of("dD"));
                      either({[&] {
                                bytes(byte_range('0', '7'));
                                hex_digits(2);
                              },
                              [&] {  // a pair of surrogates
                                bytes(any_byte_of("89abAB"));
                                hex_digits(2);
                                text("\\u");
                                bytes(any_byte_of("dD"));
                                bytes(any_byte_of("cdefCDEF"));
                                hex_digits(2);
                              }});
                    }});
          }});
}

void GrammarWriter::json_string(uint32_t min, uint32_t max) {
  const uint32_t character = shared("character", [&] { either({[&] { raw_character(); }, [&] { escape(); }}); });
  text("\"");
  repeat(character, min, max);
  text("\"");
}

void GrammarWriter::json_value() {
  call(shared("value", [&] {
    either({[&] { json_object(); }, [&] { json_array(); }, [&] { json_string(); }, [&] { json_number(); },
            [&] {
              words({"false", "null", "true"});
            }});
  }));
}

void GrammarWriter::json_object() {
  call(shared("object", [&] {
    const uint32_t member = rule([&] {
      json_string();
      white_space();
      text(":");
      white_space();
      json_value();
      white_space();
    });
    const uint32_t next_member = rule([&] {
      text(",");
      white_space();
      call(member);
    });
    text("{");
    white_space();
    optional([&] {
      call(member);
      repeat(next_member, 0, Grammar::unlimited);
    });
    text("}");
  }));
}

void GrammarWriter::json_array() {
  call(shared("array", [&] {
    const uint32_t next_item = rule([&] {
      text(",");
      white_space();
      json_value();
      white_space();
    });
    text("[");
    white_space();
    optional([&] {
      json_value();
      white_space();
      repeat(next_item, 0, Grammar::unlimited);
    });
    text("]");
  }));
}

Grammar json_object_grammar() {
  GrammarWriter writer;
  writer.white_space();
  writer.json_object();
  writer.add(Grammar::Op::accept);
  return writer.finish();
}

}  // namespace braid::models
