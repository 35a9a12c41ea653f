import { useQueryClient } from "@tanstack/react-query"
import { useRef, useState } from "react"
import type { ApiError } from "../../api/ApiError.ts"
import { failureOf } from "../../api/failure.ts"

/** Sends something and keeps what came of it: the answer, or what the server refused, field by field. */
export const useSubmit = <Result>() => {
  const client = useQueryClient()
  const [error, setError] = useState<ApiError | null>(null)
  const [isBusy, setBusy] = useState(false)
  const [result, setResult] = useState<Result>()
  // counts what was sent or dropped, as an answer to something older says nothing about what is in the form now
  const turn = useRef(0)

  const submit = async (send: () => Promise<Result>, { refresh = false } = {}): Promise<Result | undefined> => {
    const own = ++turn.current
    setBusy(true)
    setError(null)
    try {
      const answer = await send()
      if (own !== turn.current) return undefined
      setResult(answer)
      if (refresh) await client.invalidateQueries()
      return answer
    } catch (cause) {
      if (own === turn.current) setError(failureOf(cause))
      return undefined
    } finally {
      if (own === turn.current) setBusy(false)
    }
  }
  const reset = () => {
    turn.current++
    setBusy(false)
    setResult(undefined)
  }
  return { submit, error, isBusy, result, reset }
}

/** What the server refused at this field, such as `allowed_methods` or `pricing_rules[0].equals`. */
export const errorAt = (error: ApiError | null, field: string): string | undefined =>
  error?.fields.find(
    (one) => one.field === field || one.field.startsWith(`${field}.`) || one.field.startsWith(`${field}[`)
  )?.message
