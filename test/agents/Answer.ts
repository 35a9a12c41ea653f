export type Json = { readonly [name: string]: unknown }

/** What the model answers in one turn: a thought, then text, then the call of a tool. */
export interface Answer {
  readonly thought?: { readonly text: string; readonly signature: string }
  readonly text?: string
  readonly call?: ToolCall
  readonly usage?: Usage
}

/** A text is the input of one of OpenAI's custom tools. */
export interface ToolCall {
  readonly tool: string
  readonly input: Json | string
}

export interface Usage {
  /** Input tokens that did not come from a cache. */
  readonly input: number
  readonly cacheRead: number
  readonly cacheWrite: number
  readonly output: number
}

export const smallUsage: Usage = { input: 10, cacheRead: 0, cacheWrite: 0, output: 5 }

/** A text word by word, as models write it. A word counts as one token. */
export const words = (text: string): ReadonlyArray<string> => text.match(/\S+\s*/g) ?? []

let serial = 0

/** A new identifier, as long as the vendors' are. */
export const newId = (prefix: string): string => `${prefix}_${String(++serial).padStart(24, "0")}`
