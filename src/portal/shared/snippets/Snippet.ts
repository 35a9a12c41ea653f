/** What a snippet is filled in with. */
export interface Place {
  /** Where the gateway is, without a slash at its end: `http://127.0.0.1:8080`. */
  readonly gatewayUrl: string
  /** The key itself, where it may be shown. Without it, snippets read the variable `KEY`. */
  readonly key?: string | undefined
  readonly model: string
}

/** A text to copy, and where it goes. */
export interface Part {
  /** The file, the field, or what it is: `~/.codex/config.toml`, `Shell`. */
  readonly label: string
  readonly text: string
  readonly hint?: string
}

export interface Tool {
  /** Its name in addresses. */
  readonly id: string
  readonly label: string
  /** What a person must know beside the texts. */
  readonly note?: string
  readonly parts: (place: Place) => ReadonlyArray<Part>
}

/** Stands in files where no variable can. */
export const placeholder = "rk_live_…"

/** A word of a shell command, quoted where it has to be. */
export const shellWord = (text: string): string =>
  /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`

/** The key as a word of a shell command. */
export const keyWord = ({ key }: Place): string => (key === undefined ? '"$KEY"' : shellWord(key))

/** Sets the variable `KEY`, which the program after it reads. */
export const keyVariable = (place: Place): Part => ({
  label: "Shell",
  text: `export KEY=${shellWord(place.key ?? placeholder)}`,
  ...(place.key === undefined && { hint: "Your key. It was shown once, when it was made." })
})
