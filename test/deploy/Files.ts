import { existsSync, globSync } from "node:fs"
import { join } from "node:path"
import { parse } from "yaml"
import { read, root } from "../Guides.ts"

/** Reads a file of the repository, by its path there. */
export type Files = (path: string) => string

export const repository: Files = read

/** The repository with a mistake in one file. A mistake that changes nothing is a defect of the test. */
export const withMistake = (path: string, right: string | RegExp, wrong: string): Files => {
  const text = read(path)
  const changed = text.replace(right, wrong)
  if (changed === text) throw new Error(`${path} does not contain ${right}`)
  return (other) => (other === path ? changed : read(other))
}

/** A mistake in a file, and a part of the sentence that must name it. */
export type Mistake = readonly [path: string, right: string | RegExp, wrong: string, named: string]

export const exists = (path: string): boolean => existsSync(join(root, path))

/** All files below `deploy`, by their paths in the repository. */
export const all: ReadonlyArray<string> = globSync("deploy/**/{*,.env.example}", { cwd: root, withFileTypes: true })
  .filter((entry) => entry.isFile() && entry.name !== ".env")
  .map((entry) => join(entry.parentPath, entry.name).slice(root.length))
  .sort()

export const yaml = (text: string): unknown => parse(text, { merge: true })

/** The variables of a file of lines `NAME=value`. */
export const variables = (text: string): Readonly<Record<string, string>> =>
  Object.fromEntries([...text.matchAll(/^([A-Z][A-Z0-9_]*)=(.*)$/gm)].map(([, name = "", value = ""]) => [name, value]))
