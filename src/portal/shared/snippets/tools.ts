import { claudeCode, codex, cursor } from "./agents.ts"
import { curl, environment } from "./commands.ts"
import type { Tool } from "./Snippet.ts"
import { anthropicPython, anthropicTypeScript, openaiPython, openaiTypeScript } from "./sdks.ts"

/** In the order in which they are offered. */
export const tools: readonly [Tool, ...ReadonlyArray<Tool>] = [
  curl,
  openaiTypeScript,
  openaiPython,
  anthropicTypeScript,
  anthropicPython,
  claudeCode,
  codex,
  cursor,
  environment
]

export const toolOf = (id: string | undefined): Tool => tools.find((tool) => tool.id === id) ?? tools[0]
