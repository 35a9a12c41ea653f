/** A key that has got a new secret. */
export interface RotatedKey {
  readonly name: string | null
  readonly prefix: string
  readonly project: string | null
  readonly secret: string
  readonly oldSecretWorksUntil: string | null
}

/** Quotes a cell. A leading sign would make a spreadsheet compute it, as names come from people. */
const cell = (text: string | null): string => {
  const plain = text ?? ""
  const safe = /^[=+\-@\t\r]/.test(plain) ? `'${plain}` : plain
  return /[",\n\r]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe
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
    .map((row) => row.map(cell).join(","))
    .join("\n")
    .concat("\n")

/** Lets the browser store a text as a file. */
export const download = (name: string, text: string): void => {
  const address = URL.createObjectURL(new Blob([text], { type: "text/csv" }))
  const link = document.createElement("a")
  link.href = address
  link.download = name
  link.click()
  URL.revokeObjectURL(address)
}
