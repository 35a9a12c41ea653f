import type { Call, Reply } from "../../services/Redis.ts"
import * as Meters from "./Meters.ts"

/**
 * Decides whether a counter of a day or month can be trusted. The hash `limits:known:<scope>` holds a mark `<window>
 * <since>` for each counter. It means: the counter of this window is complete since configuration change `since`.
 * `wanted` is the mark that the caller expects.
 * - Same window: the counter is valid if it exists (`stands`). Otherwise it was lost (`cold`) and must be restored.
 * - Older window: nothing was counted in the new window yet. The new counter starts at 0 (`begins`).
 * - Later window, because this process's clock is slow: the counter is valid if it exists (`stands`).
 * - No mark, or a lower `since`: the limit is new or was removed for a time. The counter must be restored (`cold`).
 */
export const standingLua = `
local function standing(mark, wanted, exists)
  if mark == wanted and exists then return 'stands' end
  local window, since = string.match(mark or '', '^(%d+) (%d+)$')
  local wantedWindow, wantedSince = string.match(wanted, '^(%d+) (%d+)$')
  if not window or tonumber(wantedSince) > tonumber(since) then return 'cold', since end
  if window < wantedWindow then return exists and 'cold' or 'begins', since end
  return exists and 'stands' or 'cold', since
end`

/** Says that a counter is complete, unless a process with a faster clock already counts a later window. */
export const rememberLua = `
local function remember(known, name, mark, wanted)
  local window, since = string.match(mark or '', '^(%d+) (%d+)$')
  if not window or window <= string.match(wanted, '^%d+') or tonumber(since) < tonumber(string.match(wanted, '%d+$')) then
    redis.call('HSET', known, name, wanted)
    redis.call('EXPIRE', known, '${Meters.retentionSeconds.month}')
  end
end`

interface Mark {
  readonly window: string
  readonly since: number
}

export const parseMark = (mark: Reply | undefined): Mark | undefined => {
  const [, window, since] = /^(\d+) (\d+)$/.exec(String(mark ?? "")) ?? []
  return window === undefined ? undefined : { window, since: Number(since) }
}

export const markStanding = (
  mark: Reply | undefined,
  wanted: string,
  exists: boolean
): "stands" | "begins" | "cold" => {
  const [currentMark, wantedMark] = [parseMark(mark), parseMark(wanted)]
  if (currentMark === undefined || wantedMark === undefined || wantedMark.since > currentMark.since) return "cold"
  if (currentMark.window < wantedMark.window) return exists ? "cold" : "begins"
  return exists ? "stands" : "cold"
}

export const beginningMark = (mark: Reply | undefined, wanted: string): string =>
  `${parseMark(wanted)?.window} ${parseMark(mark)?.since}`

export const remember = (call: Call, known: string, name: string, mark: Reply | undefined, wanted: string): void => {
  const [currentMark, wantedMark] = [parseMark(mark), parseMark(wanted)]
  if (
    currentMark !== undefined &&
    wantedMark !== undefined &&
    currentMark.window > wantedMark.window &&
    currentMark.since >= wantedMark.since
  )
    return
  call("HSET", known, name, wanted)
  call("EXPIRE", known, Meters.retentionSeconds.month)
}
