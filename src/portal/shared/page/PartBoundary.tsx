import { Component, type ReactNode } from "react"
import { ApiError } from "../../api/ApiError.ts"
import { MissingFile } from "../../api/laterFile.ts"
import { reloadIfAnswered } from "../../api/reload.ts"
import { ErrorNote } from "./ErrorNote.tsx"

interface State {
  readonly failure: unknown
}

/** Keeps a mistake of one part from taking the whole page away. */
export class PartBoundary extends Component<{ readonly children: ReactNode }, State> {
  override state: State = { failure: undefined }

  static getDerivedStateFromError(cause: unknown): State {
    return { failure: cause ?? "without a reason" }
  }

  override render(): ReactNode {
    const { failure } = this.state
    if (failure === undefined) return this.props.children
    const reason = failure instanceof Error ? failure.message : String(failure)
    return (
      <ErrorNote
        error={new ApiError(0, "portal", `This part of the page failed: ${reason}`)}
        onRetry={() => (failure instanceof MissingFile ? reloadIfAnswered() : this.setState({ failure: undefined }))}
      />
    )
  }
}
