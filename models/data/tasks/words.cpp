#include "braid/models/data/tasks/words.h"

#include "braid/tensor/error.h"

namespace braid::models::text {
namespace {

std::vector<std::string> numbers(int first, int last, int step, const std::string& before, const std::string& after) {
  std::vector<std::string> values;
  for (int n = first; n <= last; n += step) values.push_back(str(before, n, after));
  return values;
}

TaskWords make_train() {
  return {
      {"Ada",   "Boris", "Carla", "Dmitri", "Elena", "Felix", "Greta",  "Hugo",   "Irene",  "Jonas",  "Keiko", "Lars",
       "Mila",  "Nadia", "Oscar", "Petra",  "Quinn", "Rosa",  "Stefan", "Tomas",  "Ursula", "Viktor", "Wanda", "Xenia",
       "Yusuf", "Zoe",   "Anton", "Bianca", "Cyril", "Diego", "Esther", "Fatima", "Goran",  "Hanna",  "Igor",  "Julia",
       "Klaus", "Leila", "Marek", "Nina",   "Olga",  "Pablo", "Ravi",   "Sofia",  "Tariq",  "Vera",   "Yara",  "Zeno"},
      {{"animal", {"a fox", "a horse", "a goat", "a camel", "an otter", "a badger", "a lynx", "a donkey"}},
       {"bird", {"an owl", "a robin", "a stork", "a parrot", "a swan", "a heron", "a sparrow", "a pelican"}},
       {"fruit", {"an apple", "a pear", "a plum", "a fig", "a melon", "a cherry", "a mango", "a peach"}},
       {"vegetable",
        {"a carrot", "a turnip", "a leek", "a radish", "a pumpkin", "a cabbage", "an onion", "a beetroot"}},
       {"vehicle", {"a tram", "a lorry", "a canoe", "a scooter", "a sledge", "a glider", "a wagon", "a ferry"}},
       {"garment", {"a coat", "a scarf", "a shirt", "a skirt", "a glove", "a jacket", "a sock", "a waistcoat"}},
       {"drink", {"tea", "coffee", "cider", "lemonade", "cocoa", "milk", "juice", "wine"}},
       {"instrument", {"a cello", "a flute", "a harp", "a trumpet", "a drum", "a banjo", "an oboe", "a tuba"}},
       {"tree", {"an oak", "a birch", "a willow", "a maple", "a pine", "a cedar", "an elm", "a spruce"}},
       {"flower", {"a tulip", "a daisy", "a lily", "an orchid", "a poppy", "a violet", "a crocus", "a dahlia"}},
       {"insect", {"a bee", "a wasp", "a moth", "an ant", "a beetle", "a mosquito", "a ladybird", "a termite"}},
       {"furniture", {"a table", "a chair", "a sofa", "a wardrobe", "a desk", "a stool", "a bench", "a shelf"}}},
      {{"France", {"Paris", "Lyon", "Nantes", "Bordeaux"}},
       {"Spain", {"Madrid", "Seville", "Malaga", "Bilbao"}},
       {"Italy", {"Rome", "Milan", "Turin", "Naples"}},
       {"Germany", {"Berlin", "Hamburg", "Munich", "Dresden"}},
       {"Poland", {"Warsaw", "Gdańsk", "Kraków", "Poznań"}},
       {"Japan", {"Tokyo", "Osaka", "Kyoto", "Nagoya"}},
       {"China", {"Beijing", "Shanghai", "Wuhan", "Nanjing"}},
       {"Canada", {"Toronto", "Ottawa", "Montreal", "Calgary"}},
       {"Brazil", {"Recife", "Curitiba", "Brasília", "Manaus"}},
       {"Egypt", {"Cairo", "Luxor", "Aswan", "Suez"}},
       {"Turkey", {"Ankara", "Istanbul", "Izmir", "Bursa"}},
       {"Sweden", {"Stockholm", "Uppsala", "Malmö", "Gothenburg"}},
       {"Kenya", {"Nairobi", "Mombasa", "Kisumu", "Nakuru"}},
       {"Australia", {"Sydney", "Brisbane", "Hobart", "Adelaide"}}},
      {{"cut", {"a knife", "a saw", "a razor"}},
       {"write", {"a pencil", "a pen", "a typewriter"}},
       {"measure", {"a ruler", "a thermometer", "a barometer"}},
       {"cook", {"a stove", "an oven", "a wok"}},
       {"shine", {"a lamp", "a torch", "a lantern"}},
       {"sweep", {"a broom", "a mop", "a whisk"}},
       {"dig", {"a spade", "a shovel", "a pickaxe"}},
       {"fly", {"a drone", "a helicopter", "an airship"}},
       {"calculate", {"an abacus", "a calculator", "a computer"}},
       {"lock", {"a padlock", "a bolt", "a latch"}},
       {"paint", {"a brush", "a roller", "an airbrush"}},
       {"magnify", {"a microscope", "a telescope", "a magnifier"}}},
      {{"hot", "cold"},     {"tall", "short"},     {"rich", "poor"},        {"happy", "sad"},
       {"fast", "slow"},    {"strong", "weak"},    {"young", "old"},        {"loud", "quiet"},
       {"brave", "timid"},  {"clean", "dirty"},    {"gentle", "fierce"},    {"polite", "rude"},
       {"early", "late"},   {"clever", "foolish"}, {"generous", "stingy"},  {"careful", "careless"},
       {"calm", "nervous"}, {"modest", "proud"},   {"thin", "thick"},       {"wet", "dry"},
       {"awake", "asleep"}, {"tidy", "messy"},     {"honest", "deceitful"}, {"busy", "idle"}},
      {{"day", "on", {"Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"}, true},
       {"year", "in", numbers(1951, 1989, 1, "", ""), false},
       {"hour", "at", numbers(1, 12, 1, "", " o'clock"), false}}};
}

TaskWords make_held_out() {
  return {
      {"Agnes", "Bruno", "Celia", "Dario", "Edith", "Franz", "Gloria", "Henrik", "Ines", "Jakob", "Karin",  "Leon",
       "Marta", "Nils",  "Otto",  "Paula", "Rufus", "Selma", "Theo",   "Uma",    "Vito", "Willa", "Yannis", "Zelda"},
      {{"fish", {"a trout", "a salmon", "a herring", "a carp", "an eel"}},
       {"metal", {"iron", "copper", "zinc", "tin", "silver"}},
       {"jewel", {"a ruby", "an emerald", "a pearl", "an opal", "a topaz"}},
       {"weapon", {"a sword", "a spear", "a dagger", "a crossbow", "a lance"}},
       {"cheese", {"brie", "cheddar", "feta", "gouda", "parmesan"}},
       {"coin", {"a penny", "a dime", "a florin", "a ducat", "a shilling"}}},
      {{"Norway", {"Oslo", "Bergen", "Trondheim"}},
       {"Greece", {"Athens", "Patras", "Volos"}},
       {"Portugal", {"Lisbon", "Porto", "Braga"}},
       {"India", {"Mumbai", "Chennai", "Jaipur"}},
       {"Peru", {"Lima", "Cusco", "Arequipa"}},
       {"Morocco", {"Rabat", "Fez", "Agadir"}},
       {"Finland", {"Helsinki", "Tampere", "Turku"}},
       {"Vietnam", {"Hanoi", "Haiphong", "Saigon"}}},
      {{"chill", {"a fridge", "a freezer", "a fan"}},
       {"float", {"a raft", "a buoy", "a lifebelt"}},
       {"lift", {"a crane", "a jack", "a winch"}},
       {"record", {"a camera", "a microphone", "a camcorder"}},
       {"bind", {"a rope", "a strap", "a ribbon"}},
       {"protect", {"a helmet", "a shield", "a visor"}},
       {"weigh", {"a scale", "a balance", "a steelyard"}}},
      {{"lucky", "unlucky"},
       {"patient", "impatient"},
       {"friendly", "hostile"},
       {"serious", "playful"},
       {"visible", "hidden"},
       {"full", "empty"},
       {"bald", "hairy"},
       {"guilty", "innocent"},
       {"drunk", "sober"},
       {"famous", "obscure"}},
      {{"month",
        "in",
        {"January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November",
         "December"},
        true},
       {"season", "in", {"spring", "summer", "autumn", "winter"}, true},
       {"decade", "in", numbers(1810, 1890, 10, "the ", "s"), false}}};
}

}  // namespace

const TaskWords& task_words(Vocabulary vocabulary) {
  static const TaskWords train = make_train(), held_out = make_held_out();
  return vocabulary == Vocabulary::train ? train : held_out;
}

}  // namespace braid::models::text
