import { PageHeader } from "../../shared/page/PageHeader.tsx"

const DeadLettersPage = () => <PageHeader title="Dead letters" />

export default DeadLettersPage
