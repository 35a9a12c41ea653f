import dockerignore from "@balena/dockerignore"
import { DockerfileParser, type Instruction, ModifiableInstruction } from "dockerfile-ast"
import { Schema } from "effect"
import manifest from "../../../package.json" with { type: "json" }
import { exists, type Files } from "../Files.ts"

export const path = "deploy/Dockerfile"

/** One instruction, with the values of ARG and ENV in its words. */
export interface Step {
  readonly keyword: string
  readonly flags: Readonly<Record<string, string>>
  readonly words: ReadonlyArray<string>
  /** The words as they are written, with continued lines joined. */
  readonly text: string
  /** Whether the words are a list in JSON, so that no shell starts. */
  readonly isExec: boolean
}

export interface Stage {
  readonly image: string
  readonly name: string | undefined
  readonly steps: ReadonlyArray<Step>
}

/** The stages, in their order. */
export const stages = (text: string): ReadonlyArray<Stage> => {
  const variables: Record<string, string> = {}
  const found: Array<{ image: string; name: string | undefined; steps: Array<Step> }> = []
  for (const instruction of DockerfileParser.parse(text).getInstructions()) {
    const step = stepOf(instruction, variables)
    if (step.keyword === "ARG") {
      const [name = "", value = ""] = step.text.split("=", 2)
      variables[name] = value
    } else if (step.keyword === "FROM") {
      const [image = "", as, name] = step.words
      found.push({ image, name: as?.toUpperCase() === "AS" ? name : undefined, steps: [] })
    } else {
      const stage = found.at(-1)
      if (stage === undefined) throw new Error(`${step.keyword} stands before the first stage`)
      stage.steps.push(step)
    }
  }
  return found
}

const stepOf = (instruction: Instruction, variables: Readonly<Record<string, string>>): Step => {
  const text = instruction.getRawArgumentsContent()?.replaceAll(/\\\n\s*/g, "") ?? ""
  const flags = instruction instanceof ModifiableInstruction ? instruction.getFlags() : []
  const [, list] = /(?:^|\bCMD )(\[.*\])$/.exec(text) ?? []
  const written = instruction.getArguments().map((argument) => argument.getValue())
  return {
    keyword: instruction.getKeyword(),
    flags: Object.fromEntries(flags.map((flag) => [flag.getName(), flag.getValue() ?? ""])),
    words:
      list === undefined
        ? written.map((word) => word.replaceAll(/\$\{(\w+)\}/g, (whole, name) => variables[name] ?? whole))
        : decodeList(list),
    text,
    isExec: list !== undefined
  }
}

const decodeList = Schema.decodeUnknownSync(Schema.fromJsonString(Schema.Array(Schema.String)))

/** The values of ENV. */
export const environmentOf = ({ steps }: Stage): Readonly<Record<string, string>> =>
  Object.fromEntries(
    steps
      .filter(({ keyword }) => keyword === "ENV")
      .flatMap(({ words }) =>
        words.map((word) => [word.slice(0, word.indexOf("=")), word.slice(word.indexOf("=") + 1)])
      )
  )

/** The last instruction of the kind. */
export const last = ({ steps }: Stage, keyword: string): Step | undefined =>
  steps.findLast((step) => step.keyword === keyword)

/** The stage that becomes the image. */
export const imageOf = (files: Files): Stage => {
  const image = stages(files(path)).at(-1)
  if (image === undefined) throw new Error("There is no stage")
  return image
}

/** Whether the file of the repository is sent to the builder. */
export const isInContext = (files: Files): ((file: string) => boolean) => {
  const ignored = dockerignore.default().add(files(".dockerignore").replaceAll(/^#.*$/gm, ""))
  return (file) => !ignored.ignores(file)
}

/** What is wrong with the Dockerfile. */
export const problemsOf = (files: Files): ReadonlyArray<string> => {
  const all = stages(files(path))
  return [...all.flatMap((stage, index) => stageProblems(stage, all.slice(0, index), files)), ...imageProblems(files)]
}

const pinned = new RegExp(`^node:${manifest.devDependencies.node.replaceAll(".", "\\.")}-\\w+-slim$`)

const stageProblems = ({ image, steps }: Stage, earlier: ReadonlyArray<Stage>, files: Files): ReadonlyArray<string> => {
  const isSent = isInContext(files)
  const copies = steps.filter(({ keyword }) => keyword === "COPY")
  return [
    ...(pinned.test(image) ? [] : [`the image ${image} is not the Node of package.json`]),
    ...copies.flatMap(({ flags: { from }, words }) => {
      if (from !== undefined) return earlier.some(({ name }) => name === from) ? [] : [`there is no stage ${from}`]
      return words.slice(0, -1).flatMap((source) => {
        if (!exists(source)) return [`COPY names ${source}, which does not exist`]
        return isSent(source) ? [] : [`.dockerignore keeps ${source} from the builder`]
      })
    }),
    ...steps
      .filter(({ keyword, words: [name = ""] }) => ["ARG", "ENV"].includes(keyword) && secret.test(name))
      .map(({ words }) => `${words[0]} would be part of the image`),
    ...steps.filter(({ keyword }) => keyword === "ADD").map(() => "ADD fetches and unpacks: use COPY")
  ]
}

const secret = /(?:PASSWORD|TOKEN|KEY|SECRET)/

const imageProblems = (files: Files): ReadonlyArray<string> => {
  const image = imageOf(files)
  const user = last(image, "USER")?.words[0] ?? "root"
  const health = last(image, "HEALTHCHECK")
  const labels = last(image, "LABEL")?.words.join(" ") ?? ""
  const runs = image.steps.filter(({ keyword }) => keyword === "RUN")
  return [
    ...(/^[1-9]\d*:[1-9]\d*$/.test(user) ? [] : [`the user is ${user}, not the number of one without rights`]),
    ...(image.steps.findIndex(({ keyword }) => keyword === "USER") <
    image.steps.findLastIndex(({ keyword }) => keyword === "COPY" || keyword === "RUN")
      ? ["a step after USER writes files that belong to the program"]
      : []),
    ...["ENTRYPOINT", "CMD"].flatMap((keyword) =>
      last(image, keyword)?.isExec === true ? [] : [`${keyword} is not a list, so a shell would get the signals`]
    ),
    ...(health?.isExec === true && health.words[0] === "node" ? [] : ["HEALTHCHECK does not run node itself"]),
    ...(last(image, "STOPSIGNAL")?.words[0] === "SIGTERM" ? [] : ["STOPSIGNAL is not SIGTERM"]),
    ...runs.flatMap(({ text }) =>
      /\b(?:npm (?:ci|i|install)|apt-get|curl|wget)\b/.test(text) ? ["the image installs more"] : []
    ),
    ...(runs.some(({ text }) => text.includes("rm -rf /usr/local/lib/node_modules")) ? [] : ["the image contains npm"]),
    ...(labels.includes(`version="${manifest.version}"`) ? [] : [`the label is not of version ${manifest.version}`])
  ]
}
