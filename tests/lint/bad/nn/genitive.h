// In order: a subject first.
// Of these rows: wrong on purpose, for tests/lint/comments.cmake.
