import assert from "node:assert/strict"

/** Asserts that an object has at least the expected members. */
export const includes = (actual: object, expected: object): void => {
  const found = Object.fromEntries(Object.keys(expected).map((name) => [name, Reflect.get(actual, name)]))
  assert.deepStrictEqual(found, expected)
}
