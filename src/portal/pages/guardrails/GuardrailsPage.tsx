import { PageHeader } from "../../shared/page/PageHeader.tsx"

const GuardrailsPage = () => <PageHeader title="Guardrails" />

export default GuardrailsPage
