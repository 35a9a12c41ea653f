import { csvLine } from "../../../shared/words/saveText.ts"

/** A key that has got a new secret. */
export interface RotatedKey {
  readonly name: string | null
  readonly prefix: string
  readonly project: string | null
  readonly secret: string
  readonly oldSecretWorksUntil: string | null
}

/** The new secrets as one file. */
export const secretsFile = (keys: ReadonlyArray<RotatedKey>): string =>
  [
    ["name", "prefix", "project", "secret", "old_secret_works_until"],
    ...keys.map(({ name, oldSecretWorksUntil, prefix, project, secret }) => [
      name,
      prefix,
      project,
      secret,
      oldSecretWorksUntil
    ])
  ]
    .map(csvLine)
    .join("\n")
    .concat("\n")
